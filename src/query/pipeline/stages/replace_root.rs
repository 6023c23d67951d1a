//! `$replaceRoot` and `$replaceWith`.

use crate::expression::{Expression, Vars, parse::show};
use crate::pipeline::stage::checked_size;
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail};

#[derive(Clone, Debug)]
struct ReplaceRoot {
    root: Expression,
}

struct Running {
    root: Expression,
    vars: Vars,
}

impl Plan for ReplaceRoot {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { root: self.root.clone(), vars: run.vars.clone() }))
    }
    fn needs(&self) -> Needs {
        self.root.needed_fields().map_or(Needs::Everything, Needs::Only)
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        match self.root.eval(d.doc(), &mut self.vars)? {
            Some(Value::Document(root)) => out.push(checked_size(root.to_doc_buf())?)?,
            v => bail!(
                40228,
                "'newRoot' expression  must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input document: {}",
                v.as_ref().map_or("MISSING".to_string(), show),
                crate::expression::type_name(&v),
                show(&Value::Document(d.to_document()))
            ),
        }
        Ok(Flow::Continue)
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let root = if name == "$replaceWith" {
        v
    } else {
        let Value::Document(d) = v else {
            bail!(40229, "expected an object as specification for $replaceRoot stage, got {}", v.type_name());
        };
        if let Some(bad) = d.keys().find(|k| *k != "newRoot") {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '$replaceRoot.{bad}' is an unknown field.");
        }
        let Some(root) = d.get("newRoot") else {
            bail!(IDL_FAILED_TO_PARSE, "BSON field '$replaceRoot.newRoot' is missing but a required field");
        };
        root
    };
    let root = Expression::parse(root, &ctx.scope())?;
    if let Some(v) = root.as_constant()
        && !matches!(v, Value::Document(_))
    {
        bail!(
            40228,
            "'newRoot' expression  must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'.",
            show(v),
            v.type_name()
        );
    }
    one(name, v, ReplaceRoot { root })
}
