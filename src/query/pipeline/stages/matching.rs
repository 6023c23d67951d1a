//! `$match`.

use crate::matcher::Matcher;
use crate::matcher::ops::stands_in;
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail};

#[derive(Clone)]
struct Match(Matcher, Needs);

impl std::fmt::Debug for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("$match")
    }
}

impl Plan for Match {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
    fn needs(&self) -> Needs {
        self.1.clone()
    }
}

impl Stage for Match {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        if self.0.matches(d.doc())? {
            out.push(d)?;
        }
        Ok(Flow::Continue)
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(15959, "the match filter must be an expression in an object") };
    let filter = d.to_doc_buf();
    if stands_in(filter.doc(), "$where") && !ctx.query.scripts.map_reduce {
        bail!(BAD_VALUE, "$where is not allowed in this context");
    }
    let matcher = Matcher::parse_unsorted(filter.doc(), &ctx.query)?;
    let mut paths = Vec::new();
    let needs = if filter_paths(d, &mut paths) { Needs::Passing(paths) } else { Needs::Everything };
    one(name, v, Match(matcher, needs))
}

/// The paths a filter reads; false when it cannot be told (`$expr`, `$where`, `$jsonSchema`, `$text`).
pub fn filter_paths(filter: &document::Document, out: &mut Vec<String>) -> bool {
    filter.iter().all(|(name, v)| match (name, v) {
        ("$and" | "$or" | "$nor", Value::Array(list)) => list.iter().all(|item| match item {
            Value::Document(d) => filter_paths(d, out),
            _ => true,
        }),
        ("$comment", _) => true,
        (name, _) if name.starts_with('$') => false,
        (path, _) => {
            out.push(path.to_string());
            true
        }
    })
}
