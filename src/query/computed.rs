//! An expression together with the variables it was parsed under: what a filter, a projection or an update holds.

use crate::expression::{Expression, Variables, Vars};
use crate::{ParseContext, QueryContext};
use document::{Doc, Result, Value};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Computed {
    expression: Arc<Expression>,
    vars: Arc<Vars>,
    source: Arc<Value>,
}

impl Computed {
    pub fn parse(v: &Value, ctx: &QueryContext) -> Result<Computed> {
        let names = Variables::with_names(ctx.variables.keys())
            .timeless(ctx.timeless)
            .clockless(ctx.clockless)
            .with_collation(&ctx.collation)
            .with_text(&ctx.text)
            .with_scripts(&ctx.scripts)
            .with_constants(&ctx.constants);
        let expression = Arc::new(Expression::parse(v, &names)?);
        let mut vars = Vars::with_values(ctx.now_ms, ctx.variables.iter());
        vars.cluster_time = ctx.shown_cluster_time();
        Ok(Computed { expression, vars: Arc::new(vars), source: Arc::new(v.clone()) })
    }
    /// The same at the time of `ctx`.
    pub fn at_time_of(&self, ctx: &ParseContext) -> Computed {
        let mut vars = (*self.vars).clone();
        vars.now_ms = ctx.now_ms;
        vars.cluster_time = ctx.shown_cluster_time();
        Computed { vars: Arc::new(vars), ..self.clone() }
    }
    pub fn expression(&self) -> &Expression {
        &self.expression
    }
    /// What it was parsed from.
    pub fn source(&self) -> &Value {
        &self.source
    }
    /// The value of a part that reads no document; `None` where it has none or fails.
    pub fn value_of(&self, part: &Expression) -> Option<Value> {
        part.eval(Doc::empty(), &mut (*self.vars).clone()).ok().flatten()
    }
    /// The value for `root`; `None` is missing.
    pub fn eval(&self, root: Doc<'_>) -> Result<Option<Value>> {
        self.expression.eval(root, &mut (*self.vars).clone())
    }
    pub fn eval_bool(&self, root: Doc<'_>) -> Result<bool> {
        self.expression.eval_bool(root, &mut (*self.vars).clone())
    }
}
