//! `$limit`, `$skip`, `$count`.

use crate::expression::parse::show;
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, DocWriter, Result, Value, bail, number};

#[derive(Clone, Debug)]
pub struct Limit(pub i64);

impl Plan for Limit {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(Vec::new())
    }
}
impl Stage for Limit {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        self.0 -= 1;
        out.push(d)?;
        Ok(if self.0 <= 0 { Flow::Done } else { Flow::Continue })
    }
}

fn amount(name: &str, v: &Value, code: i32) -> Result<i64> {
    let fail = |why: &str| {
        let text = format!("invalid argument to {name} stage: {why}: {name}: {}", show(v));
        Err(document::Error::new(code, text))
    };
    if !v.is_number() {
        return fail("Expected a number in");
    }
    match number::to_i64_exact(v) {
        Some(n) if n >= 0 => Ok(n),
        Some(_) => fail("Expected a non-negative number in"),
        None if number::as_f64(v).is_some_and(|d| d.fract() == 0.0) => {
            fail("Cannot represent as a 64-bit integer")
        }
        None => fail("Expected an integer"),
    }
}

pub fn limit(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let n = amount(name, v, 5107201)?;
    if n == 0 {
        bail!(15958, "the limit must be positive");
    }
    one(name, v, Limit(n))
}

#[derive(Clone, Debug)]
pub struct Skip(pub i64);

impl Plan for Skip {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(Vec::new())
    }
}
impl Stage for Skip {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        match self.0 > 0 {
            true => self.0 -= 1,
            false => out.push(d)?,
        }
        Ok(Flow::Continue)
    }
}

pub fn skip(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    one(name, v, Skip(amount(name, v, 5107200)?))
}

/// Gives one document with the number of documents, or none for none.
#[derive(Clone, Debug)]
struct Count(String, i64);

impl Plan for Count {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
    fn needs(&self) -> Needs {
        Needs::Only(Vec::new())
    }
}
impl Stage for Count {
    fn push(&mut self, _: DocBuf, _: &mut Batch) -> Result<Flow> {
        self.1 += 1;
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        if self.1 > 0 {
            out.push(DocWriter::build(|w| number::int_or_long(self.1).write(w, &self.0)))?;
        }
        Ok(Flow::Continue)
    }
}

pub fn count(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Value::String(field) = v else { bail!(40156, "the count field must be a non-empty string") };
    if field.is_empty() {
        bail!(40157, "the count field must be a non-empty string");
    }
    if field.starts_with('$') {
        bail!(40158, "the count field cannot be a $-prefixed path");
    }
    if field.contains('\0') {
        bail!(40159, "the count field cannot contain a null byte");
    }
    if field.contains('.') {
        bail!(40160, "the count field cannot contain '.'");
    }
    if field == "_id" {
        bail!(9039800, "the count field cannot be '_id'");
    }
    one(name, v, Count(field.clone(), 0))
}
