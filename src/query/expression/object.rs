//! Objects: `$mergeObjects`, `$getField`, `$setField`, `$unsetField`, `$objectToArray`, `$arrayToObject`.

use super::{Arg, Eval, Expression, Node, Variables, Vars, is_nullish, parse, type_name};
use document::{Doc, Document, Error, Result, Value, bail};
use std::collections::HashMap;
use std::sync::Arc;

fn show(v: &Arg) -> String {
    v.as_ref().map_or("missing".to_string(), parse::show)
}

/// Fields from which on a document that is put together has an index of their names.
const INDEXED: usize = 32;

/// A document that is put together of fields of which some come again: their values take the places of the earlier ones.
/// Each is found at once, however many there are.
#[derive(Default)]
pub struct Merging {
    fields: Document,
    index: HashMap<String, usize, foldhash::fast::RandomState>,
}

impl Merging {
    /// Puts a field there; returns the value whose place it takes.
    pub fn insert(&mut self, name: String, v: Value) -> Option<Value> {
        if self.fields.len() < INDEXED {
            if let Some(slot) = self.fields.get_mut(&name) {
                return Some(std::mem::replace(slot, v));
            }
            self.fields.push(name, v);
            return None;
        }
        if self.index.is_empty() {
            let names = self.fields.keys().map(str::to_string);
            self.index = names.zip(0..).collect();
        }
        match self.index.get(&name) {
            Some(at) => Some(std::mem::replace(&mut self.fields.0[*at].1, v)),
            None => {
                self.index.insert(name.clone(), self.fields.len());
                self.fields.push(name, v);
                None
            }
        }
    }
    /// Puts the fields of a document over those that are there.
    pub fn merge(&mut self, from: Document) {
        for (name, v) in from {
            self.insert(name, v);
        }
    }
    pub fn fields(&self) -> &Document {
        &self.fields
    }
    pub fn into_document(self) -> Document {
        self.fields
    }
}

pub fn merge_objects(args: &mut [Arg]) -> Eval {
    let mut out = Merging::default();
    // A single array argument is merged element by element.
    if let [Some(Value::Array(items))] = args {
        for item in std::mem::take(items) {
            merge_one(&mut out, Some(item))?;
        }
        return Ok(Some(Value::Document(out.into_document())));
    }
    for a in args.iter_mut() {
        merge_one(&mut out, a.take())?;
    }
    Ok(Some(Value::Document(out.into_document())))
}

fn merge_one(out: &mut Merging, v: Arg) -> Result<()> {
    match v {
        v if is_nullish(&v) => {}
        Some(Value::Document(d)) => out.merge(d),
        v => bail!(
            40400,
            "$mergeObjects requires object inputs, but input {} is of type {}",
            show(&v),
            type_name(&v)
        ),
    }
    Ok(())
}

pub fn object_to_array(args: &mut [Arg]) -> Eval {
    match args[0].take() {
        v if is_nullish(&v) => Ok(Some(Value::Null)),
        Some(Value::Document(d)) => {
            let pair =
                |(k, v)| Value::Document(Document(vec![("k".into(), Value::String(k)), ("v".into(), v)]));
            Ok(Some(Value::Array(d.into_iter().map(pair).collect())))
        }
        v => bail!(40390, "$objectToArray requires a document input, found: {}", type_name(&v)),
    }
}

pub fn array_to_object(args: &mut [Arg]) -> Eval {
    let items = match args[0].take() {
        v if is_nullish(&v) => return Ok(Some(Value::Null)),
        Some(Value::Array(items)) => items,
        v => bail!(40386, "$arrayToObject requires an array input, found: {}", type_name(&v)),
    };
    let mut out = Merging::default();
    let mut pairs = None;
    for item in items {
        match item {
            Value::Array(pair) => {
                if pairs == Some(false) {
                    bail!(
                        40391,
                        "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: array"
                    );
                }
                pairs = Some(true);
                let (k, v) = from_pair(pair)?;
                out.insert(k, v);
            }
            Value::Document(d) => {
                if pairs == Some(true) {
                    bail!(
                        40396,
                        "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: object"
                    );
                }
                pairs = Some(false);
                let (k, v) = from_key_value(d)?;
                out.insert(k, v);
            }
            v if pairs == Some(true) => bail!(
                40396,
                "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: {}",
                v.type_name()
            ),
            v if pairs == Some(false) => bail!(
                40391,
                "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: {}",
                v.type_name()
            ),
            v => bail!(40398, "Unrecognised input type format for $arrayToObject: {}", v.type_name()),
        }
    }
    Ok(Some(Value::Document(out.into_document())))
}

fn from_pair(pair: Vec<Value>) -> Result<(String, Value)> {
    let n = pair.len();
    let Ok([k, v]) = <[Value; 2]>::try_from(pair) else {
        bail!(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: {n}");
    };
    let Value::String(k) = k else {
        bail!(
            40395,
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {}",
            k.type_name()
        );
    };
    if k.contains('\0') {
        bail!(4940400, "Key field cannot contain an embedded null byte");
    }
    Ok((k, v))
}

fn from_key_value(mut d: Document) -> Result<(String, Value)> {
    if d.len() != 2 {
        bail!(
            40392,
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}",
            d.len()
        );
    }
    let (Some(k), Some(v)) = (d.remove("k"), d.remove("v")) else {
        bail!(
            40393,
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {{}}"
        );
    };
    let Value::String(k) = k else {
        bail!(
            40394,
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {}",
            k.type_name()
        );
    };
    if k.contains('\0') {
        bail!(4940401, "Key field cannot contain an embedded null byte");
    }
    Ok((k, v))
}

#[derive(Debug)]
struct GetField {
    field: Expression,
    input: Expression,
}

impl Node for GetField {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let field = self.field.eval(root, vars)?;
        let Some(Value::String(name)) = &field else {
            bail!(
                3041704,
                "$getField requires 'field' to evaluate to type String, but got {}",
                type_name(&field)
            );
        };
        if let (Expression::Root(path), None) = (&self.input, vars.current())
            && path.is_empty()
        {
            return Ok(root.get(name).map(|v| v.to_value()));
        }
        match self.input.eval(root, vars)? {
            Some(Value::Document(mut d)) => Ok(d.remove(name)),
            v if is_nullish(&v) && v.is_some() => Ok(Some(Value::Null)),
            _ => Ok(None),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.field, &self.input]
    }
    fn name(&self) -> &'static str {
        "$getField"
    }
}

pub fn get_field(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let current = || parse::expression(&Value::from("$$CURRENT"), vars);
    let (field, input) = match v {
        Value::Document(d) if d.first().is_some_and(|(k, _)| !k.starts_with('$')) || d.is_empty() => {
            if let Some(bad) = d.keys().find(|k| !["field", "input"].contains(k)) {
                bail!(3041701, "$getField found an unknown argument: {bad}");
            }
            let Some(field) = d.get("field") else {
                bail!(3041702, "$getField requires 'field' to be specified")
            };
            let Some(input) = d.get("input") else {
                bail!(3041703, "$getField requires 'input' to be specified")
            };
            (parse::expression(field, vars)?, parse::expression(input, vars)?)
        }
        other => (parse::expression(other, vars)?, current()?),
    };
    if let Some(v) = field.as_constant()
        && !matches!(v, Value::String(_))
    {
        bail!(3041704, "$getField requires 'field' to evaluate to type String, but got {}", v.type_name());
    }
    Ok(Expression::Special(Arc::new(GetField { field, input })))
}

#[derive(Debug)]
struct SetField {
    name: &'static str,
    field: String,
    input: Expression,
    /// `None` removes the field.
    value: Option<Expression>,
}

impl Node for SetField {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        if is_nullish(&input) {
            return Ok(Some(Value::Null));
        }
        let Some(Value::Document(mut d)) = input else {
            bail!(4161105, "{} requires 'input' to evaluate to type Object", self.name);
        };
        let value = match &self.value {
            None => None,
            Some(e) => e.eval(root, vars)?,
        };
        match value {
            Some(v) => d.insert(self.field.as_str(), v),
            None => {
                d.remove(&self.field);
            }
        }
        Ok(Some(Value::Document(d)))
    }
    fn children(&self) -> Vec<&Expression> {
        [&self.input].into_iter().chain(&self.value).collect()
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn set_field(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let known: &[&str] = if name == "$setField" { &["field", "input", "value"] } else { &["field", "input"] };
    let Value::Document(d) = v else {
        bail!(4161100, "{name} requires an object as an argument, found: {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(4161101, "{name} found an unknown argument: {bad}");
    }
    let Some(field) = d.get("field") else { bail!(4161102, "{name} requires 'field' to be specified") };
    let value = d.get("value").map(|v| parse::expression(v, vars)).transpose()?;
    if name == "$setField" && value.is_none() {
        bail!(4161103, "{name} requires 'value' to be specified");
    }
    let Some(input) = d.get("input") else { bail!(4161109, "{name} requires 'input' to be specified") };
    let field = constant_name(name, field, vars)?;
    Ok(Expression::Special(Arc::new(SetField { name, field, input: parse::expression(input, vars)?, value })))
}

fn constant_name(name: &str, v: &Value, vars: &Variables) -> Result<String> {
    if let Value::String(s) = v
        && s.starts_with('$')
    {
        let text =
            format!("'field' argument to {name} must be a constant, not a field path; use $literal: {s}");
        return Err(Error::new(4161108, text));
    }
    let field = parse::expression(v, vars)?;
    // Objects and arrays are built, even those of constants; the empty object is one.
    let built = match v {
        Value::Document(d) => d.keys().next().is_some_and(|k| !k.starts_with('$')),
        v => matches!(v, Value::Array(_)),
    };
    match field.as_constant().filter(|_| !built) {
        None => bail!(
            4161106,
            "{name} requires 'field' to evaluate to a constant, but got a non-constant argument"
        ),
        Some(Value::String(s)) if s.contains('\0') => {
            bail!(9534700, "{name} requires 'field' not to contain an embedded null byte")
        }
        Some(Value::String(s)) => Ok(s.clone()),
        Some(v) => {
            bail!(4161107, "{name} requires 'field' to evaluate to type String, but got {}", v.type_name())
        }
    }
}
