//! `$cond`, `$ifNull`, `$switch`: only the chosen branch is evaluated. A branch that is constant must have a value whether it is chosen or
//! not, except behind a constant case of `$switch`.

use super::{Eval, Expression, Node, Variables, Vars, is_nullish, parse};
use document::{Doc, Document, Result, Value, bail};
use std::sync::Arc;

#[derive(Debug)]
struct Cond {
    test: Expression,
    yes: Expression,
    no: Expression,
}

impl Node for Cond {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let chosen = if self.test.eval_bool(root, vars)? { &self.yes } else { &self.no };
        chosen.eval(root, vars)
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.test, &self.yes, &self.no]
    }
    fn name(&self) -> &'static str {
        "$cond"
    }
}

/// `[test, yes, no]` or `{if, then, else}`.
pub fn cond(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let [test, yes, no]: [Expression; 3] = match v {
        Value::Document(d) => named_cond(d, vars)?,
        other => {
            let args = parse::arguments(other, vars)?;
            parse::arity(name, args.len(), 3, 3)?;
            match <[Expression; 3]>::try_from(args) {
                Ok(three) => three,
                Err(_) => bail!(16020, "Expression $cond takes exactly 3 arguments."),
            }
        }
    };
    Ok(Expression::Special(Arc::new(Cond { test, yes, no })))
}

fn named_cond(d: &Document, vars: &Variables) -> Result<[Expression; 3]> {
    if let Some(bad) = d.keys().find(|k| !["if", "then", "else"].contains(k)) {
        bail!(17083, "Unrecognized parameter to $cond: {bad}");
    }
    let part = |name: &str| d.get(name).map(|v| parse::expression(v, vars)).transpose();
    let Some(test) = part("if")? else { bail!(17080, "Missing 'if' parameter to $cond") };
    let Some(yes) = part("then")? else { bail!(17081, "Missing 'then' parameter to $cond") };
    let Some(no) = part("else")? else { bail!(17082, "Missing 'else' parameter to $cond") };
    Ok([test, yes, no])
}

#[derive(Debug)]
struct IfNull(Vec<Expression>);

impl Node for IfNull {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut last = None;
        for e in &self.0 {
            last = e.eval(root, vars)?;
            if !is_nullish(&last) {
                break;
            }
        }
        Ok(last)
    }
    fn children(&self) -> Vec<&Expression> {
        self.0.iter().collect()
    }
    fn name(&self) -> &'static str {
        "$ifNull"
    }
}

pub fn if_null(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let args = parse::arguments(v, vars)?;
    if args.len() < 2 {
        bail!(1257300, "$ifNull needs at least two arguments, had: {}", args.len());
    }
    Ok(Expression::Special(Arc::new(IfNull(args))))
}

#[derive(Debug)]
struct Switch {
    branches: Vec<(Expression, Expression)>,
    default: Option<Expression>,
}

impl Node for Switch {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        for (case, then) in &self.branches {
            if case.eval_bool(root, vars)? {
                return then.eval(root, vars);
            }
        }
        match &self.default {
            Some(e) => e.eval(root, vars),
            None => {
                // The real server notices before it runs when nothing depends on the input.
                let constant = self.branches.iter().all(|(case, _)| case.is_constant());
                Err(document::Error::new(
                    if constant { 40069 } else { 40066 },
                    "$switch could not find a matching branch for an input, and no default was specified.",
                ))
            }
        }
    }
    fn children(&self) -> Vec<&Expression> {
        self.branches.iter().flat_map(|(a, b)| [a, b]).chain(&self.default).collect()
    }
    /// Not what a constant case leaves out. The default is, though nothing may be left for it.
    fn settled(&self) -> Vec<&Expression> {
        let mut out: Vec<&Expression> = self.default.iter().collect();
        for (case, then) in &self.branches {
            out.push(case);
            match case.constant_truth() {
                None => out.push(then),
                Some(Ok(false)) => {}
                Some(Ok(true)) => {
                    out.push(then);
                    break;
                }
                // It fails again where it is looked at, before whatever comes behind it.
                Some(Err(_)) => break,
            }
        }
        out
    }
    fn name(&self) -> &'static str {
        "$switch"
    }
}

pub fn switch(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(40060, "$switch requires an object as an argument, found: {}", v.type_name());
    };
    let mut branches = Vec::new();
    let mut default = None;
    for (name, v) in d.iter() {
        match (name, v) {
            ("branches", Value::Array(items)) => {
                for item in items {
                    branches.push(branch(item, vars)?);
                }
            }
            ("branches", v) => {
                bail!(40061, "$switch expected an array for 'branches', found: {}", v.type_name())
            }
            ("default", v) => default = Some(parse::expression(v, vars)?),
            (other, _) => bail!(40067, "$switch found an unknown argument: {other}"),
        }
    }
    if branches.is_empty() {
        bail!(40068, "$switch requires at least one branch.");
    }
    Ok(Expression::Special(Arc::new(Switch { branches, default })))
}

fn branch(v: &Value, vars: &Variables) -> Result<(Expression, Expression)> {
    let Value::Document(d) = v else {
        bail!(40062, "$switch expected each branch to be an object, found: {}", v.type_name());
    };
    let (mut case, mut then) = (None, None);
    for (name, v) in d.iter() {
        match name {
            "case" => case = Some(parse::expression(v, vars)?),
            "then" => then = Some(parse::expression(v, vars)?),
            other => bail!(40063, "$switch found an unknown argument to a branch: {other}"),
        }
    }
    let Some(case) = case else { bail!(40064, "$switch requires each branch have a 'case' expression") };
    let Some(then) = then else { bail!(40065, "$switch requires each branch have a 'then' expression.") };
    Ok((case, then))
}
