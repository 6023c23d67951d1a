//! `$redact`: keeps, prunes or descends into each level of a document.

use crate::expression::{Expression, Vars};
use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use document::{Doc, DocBuf, Document, Result, Value, bail};

#[derive(Clone, Debug)]
struct Redact(Expression);

struct Running {
    expression: Expression,
    vars: Vars,
}

impl Plan for Redact {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { expression: self.0.clone(), vars: run.vars.clone() }))
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        if let Some(kept) = self.document(d.doc(), d.to_document())? {
            out.push(kept.to_doc_buf())?;
        }
        Ok(Flow::Continue)
    }
}

impl Running {
    fn document(&mut self, root: Doc<'_>, level: Document) -> Result<Option<Document>> {
        self.vars.push_current(Value::Document(level.clone()));
        let verdict = self.expression.eval(root, &mut self.vars);
        self.vars.pop_current();
        match verdict?.as_ref().and_then(Value::as_str) {
            Some("keep") => Ok(Some(level)),
            Some("prune") => Ok(None),
            Some("descend") => {
                let mut out = Document::new();
                for (name, v) in level {
                    if let Some(v) = self.value(root, v)? {
                        out.push(name, v);
                    }
                }
                Ok(Some(out))
            }
            _ => bail!(
                17053,
                "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned an unexpected value"
            ),
        }
    }
    fn value(&mut self, root: Doc<'_>, v: Value) -> Result<Option<Value>> {
        match v {
            Value::Document(d) => Ok(self.document(root, d)?.map(Value::Document)),
            Value::Array(items) => {
                let mut out = Vec::new();
                for item in items {
                    out.extend(self.value(root, item)?);
                }
                Ok(Some(Value::Array(out)))
            }
            v => Ok(Some(v)),
        }
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let expression = Expression::parse(v, &ctx.scope().for_redact())?;
    one(name, v, Redact(expression))
}
