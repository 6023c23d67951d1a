//! `$accumulator`, and `$_internalJsReduce` of a mapReduce command.

use super::{Accumulator, Parsed, parse, value_bytes};
use crate::expression::{Arg, Expression, Variables, script};
use crate::script::{Function, code_of};
use document::{Document, Result, Value, bail};
use std::sync::Arc;

#[derive(Debug)]
struct Functions {
    init: Function,
    accumulate: Function,
    merge: Function,
    finalize: Option<Function>,
}

struct Custom {
    functions: Arc<Functions>,
    init_args: Value,
    state: Option<Value>,
}

impl Custom {
    fn begin(&self) -> Result<Value> {
        match &self.init_args {
            Value::Array(args) => self.functions.init.call(args.clone()),
            v => bail!(4544711, "$accumulator initArgs must evaluate to an array: {}", v.type_name()),
        }
    }
    fn state(&mut self) -> Result<Value> {
        match self.state.take() {
            Some(state) => Ok(state),
            None => self.begin(),
        }
    }
}

impl Accumulator for Custom {
    fn add(&mut self, v: Arg) -> Result<()> {
        let state = self.state()?;
        let Some(Value::Array(values)) = v else {
            bail!(4544712, "$accumulator accumulateArgs must evaluate to an array");
        };
        let args = std::iter::once(state).chain(values).collect();
        self.state = Some(self.functions.accumulate.call(args)?);
        Ok(())
    }
    fn settle(&mut self, partial: bool) -> Result<()> {
        let state = self.state()?;
        self.state = Some(match &self.functions.finalize {
            Some(finalize) if !partial => finalize.call(vec![state])?,
            _ => state,
        });
        Ok(())
    }
    fn export(&mut self) -> Value {
        self.state.take().unwrap_or(Value::Null)
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        self.state = Some(match self.state.take() {
            None => partial,
            Some(state) => self.functions.merge.call(vec![state, partial])?,
        });
        Ok(())
    }
    fn finish(&mut self) -> Value {
        self.state.take().unwrap_or(Value::Null)
    }
    fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, value_bytes)
    }
}

/// A field of `$accumulator` that is a function.
fn function(d: &Document, field: &str, vars: &Variables) -> Result<Option<Function>> {
    let Some(v) = d.get(field) else { return Ok(None) };
    let expression = parse::expression(v, vars)?;
    let code = expression.as_constant().and_then(code_of);
    let Some(code) = code else {
        bail!(4544701, "$accumulator {field} must be a string or code constant, found: {}", v.type_name());
    };
    vars.scripts().function(code, None).map(Some)
}

pub fn accumulator(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let Value::Document(d) = v else {
        bail!(4544703, "{name} expects an object as an argument; found: {}", v.type_name());
    };
    const FIELDS: &[&str] =
        &["init", "initArgs", "accumulate", "accumulateArgs", "merge", "finalize", "lang"];
    if let Some((unknown, _)) = d.iter().find(|(name, _)| !FIELDS.contains(name)) {
        bail!(4544704, "{name} got an unexpected field: {unknown}");
    }
    let required = |field: &str, code: i32| -> Result<Function> {
        function(d, field, vars)?
            .ok_or_else(|| document::Error::new(code, format!("{name} missing required argument '{field}'")))
    };
    let functions = Arc::new(Functions {
        init: required("init", 4544705)?,
        accumulate: required("accumulate", 4544706)?,
        merge: required("merge", 4544708)?,
        finalize: function(d, "finalize", vars)?,
    });
    let Some(args) = d.get("accumulateArgs") else {
        bail!(4544707, "{name} missing required argument 'accumulateArgs'");
    };
    match d.get("lang") {
        None => bail!(4544709, "{name} missing required argument 'lang'"),
        Some(Value::String(lang)) if lang == "js" => {}
        Some(_) => bail!(4544702, "{name} only supports lang: 'js'"),
    }
    let init_args = match d.get("initArgs") {
        Some(v) => parse::expression(v, vars)?,
        None => Expression::Constant(Value::Array(Vec::new())),
    };
    Ok(Parsed::from_key(name, parse::expression(args, vars)?, init_args, move |init_args| {
        Box::new(Custom { functions: functions.clone(), init_args, state: None })
    }))
}

/// Values of one key that are kept before they are reduced early.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The values of one key. Its partial is one of the pairs that it takes.
struct Reduce {
    function: Function,
    key: Value,
    values: Vec<Value>,
    bytes: usize,
}

impl Reduce {
    fn reduce(&mut self) -> Result<()> {
        if self.values.len() > 1 {
            let values = Value::Array(std::mem::take(&mut self.values));
            let value = self.function.call(vec![self.key.clone(), values])?;
            self.bytes = value_bytes(&value);
            self.values.push(value);
        }
        Ok(())
    }
    fn take(&mut self, pair: Value) -> Result<()> {
        let Value::Document(mut pair) = pair else { return Ok(()) };
        let value = pair.remove("v").unwrap_or(Value::Undefined);
        self.key = pair.remove("k").unwrap_or(Value::Null);
        self.bytes += value_bytes(&value);
        self.values.push(value);
        if self.bytes > KEPT_BYTES_MAX { self.reduce() } else { Ok(()) }
    }
}

impl Accumulator for Reduce {
    fn add(&mut self, v: Arg) -> Result<()> {
        v.map_or(Ok(()), |pair| self.take(pair))
    }
    fn settle(&mut self, _: bool) -> Result<()> {
        self.reduce()
    }
    fn export(&mut self) -> Value {
        let mut pair = Document::new();
        pair.push("k", std::mem::replace(&mut self.key, Value::Null));
        pair.push("v", self.finish());
        Value::Document(pair)
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        self.take(partial)
    }
    fn finish(&mut self) -> Value {
        self.values.pop().unwrap_or(Value::Undefined)
    }
    fn memory(&self) -> usize {
        self.bytes
    }
}

/// `{data: <{k, v}>, eval: <code>, scope: {..}}`.
pub fn reduce(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let function = script::internal_function(name, v, vars)?;
    let data = v.as_document().and_then(|d| d.get("data")).unwrap_or(&Value::Null);
    Ok(Parsed::new(name, parse::expression(data, vars)?, move |_| {
        Box::new(Reduce { function: function.clone(), key: Value::Null, values: Vec::new(), bytes: 0 })
    }))
}
