//! `$function`, and what a mapReduce command becomes: `$_internalJsEmit` and `$_internalJsCall`.

use super::{Eval, Expression, Node, Variables, Vars, parse};
use crate::script::{Function, code_of};
use document::{Doc, DocBuf, Document, Result, Value, bail};
use std::sync::Arc;

/// A function of the values of `args`.
#[derive(Debug)]
struct Apply {
    function: Function,
    args: Expression,
    name: &'static str,
}

impl Node for Apply {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        match self.args.eval_or_null(root, vars)? {
            Value::Array(args) => self.function.call(args).map(Some),
            _ => bail!(31266, "The args field must be of type array"),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.args]
    }
    fn is_pure(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn function(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(31260, "{name} requires an object as an argument, found: {}", v.type_name());
    };
    let Some(body) = d.get("body") else { bail!(31261, "The body function must be specified.") };
    let body = parse::expression(body, vars)?;
    let Some(body) = body.as_constant() else {
        bail!(31432, "The body function must be a constant expression")
    };
    let Some(code) = code_of(body) else {
        bail!(31262, "The body function must evaluate to type string or code");
    };
    let Some(args) = d.get("args") else { bail!(31263, "The args field must be specified.") };
    let args = parse::expression(args, vars)?;
    match d.get("lang") {
        None => bail!(31418, "The lang field must be specified."),
        Some(Value::String(lang)) if lang == "js" => {}
        Some(_) => bail!(31419, "Currently the only supported language specifier is 'js'."),
    }
    if let Some((unknown, _)) = d.iter().find(|(name, _)| !matches!(*name, "body" | "args" | "lang")) {
        bail!(31265, "Unrecognized argument to {name}: {unknown}");
    }
    let function = vars.scripts().function(code, None)?;
    Ok(Expression::Special(Arc::new(Apply { function, args, name })))
}

/// `{eval: <code>, scope: {..}, ..}`, which only this server writes.
fn internal(name: &str, v: &Value, vars: &Variables) -> Result<(Document, Function)> {
    let d = match v {
        Value::Document(d) if vars.scripts().map_reduce => d,
        _ => bail!(INVALID_PIPELINE_OPERATOR, "Unrecognized expression '{name}'"),
    };
    let code = d.get("eval").and_then(code_of);
    let Some(code) = code else { bail!(31239, "{name} needs a function") };
    let scope = d.get("scope").and_then(Value::as_document).map(|s| Arc::new(s.to_doc_buf()));
    Ok((d.clone(), vars.scripts().function(code, scope)?))
}

/// The function of an internal operator, for accumulators.
pub(crate) fn internal_function(name: &str, v: &Value, vars: &Variables) -> Result<Function> {
    internal(name, v, vars).map(|(_, function)| function)
}

/// The emitted pairs of a document.
#[derive(Debug)]
struct Emit(Function);

impl Node for Emit {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let rebound: DocBuf;
        let this = match vars.current() {
            Some(Value::Document(d)) => {
                rebound = d.to_doc_buf();
                rebound.doc()
            }
            _ => root,
        };
        self.0.emitted(this).map(|pairs| Some(Value::Array(pairs)))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "$_internalJsEmit"
    }
}

pub fn emit(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    Ok(Expression::Special(Arc::new(Emit(internal(name, v, vars)?.1))))
}

/// A function of the command applied to `args`.
pub fn call(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let (d, function) = internal(name, v, vars)?;
    let args = parse::expression(d.get("args").unwrap_or(&Value::Null), vars)?;
    Ok(Expression::Special(Arc::new(Apply { function, args, name })))
}
