//! Operators that bind variables: `$let`, `$map`, `$filter`, `$reduce`.

use super::parse::{self, check_variable_name};
use super::{Eval, Expression, Node, Variables, Vars, is_nullish, number, type_name};
use document::{Doc, Document, Result, Value, bail};
use std::borrow::Cow;
use std::sync::Arc;

/// A binding that may be `$$CURRENT`, which is not a stack position.
#[derive(Debug)]
struct Let {
    /// In the order written; `true` marks `CURRENT`.
    bindings: Vec<(bool, Expression)>,
    body: Expression,
}

impl Node for Let {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut values = Vec::with_capacity(self.bindings.len());
        for (_, e) in &self.bindings {
            values.push(e.eval(root, vars)?);
        }
        let depth = vars.len();
        let mut rebound = false;
        for ((current, _), v) in self.bindings.iter().zip(values) {
            if *current {
                vars.push_current(v.unwrap_or(Value::Null));
                rebound = true;
            } else {
                vars.push(v);
            }
        }
        let result = self.body.eval(root, vars);
        vars.truncate(depth);
        if rebound {
            vars.pop_current();
        }
        result
    }
    fn children(&self) -> Vec<&Expression> {
        self.bindings.iter().map(|(_, e)| e).chain([&self.body]).collect()
    }
    fn is_pure(&self) -> bool {
        !self.bindings.iter().any(|(current, _)| *current)
    }
    fn name(&self) -> &'static str {
        "$let"
    }
}

pub fn let_in(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(16874, "$let only supports an object as its argument") };
    let (mut defined, mut body) = (None, None);
    for (name, v) in d.iter() {
        match name {
            "vars" => match v {
                Value::Document(v) => defined = Some(Cow::Borrowed(v)),
                // An array is read as a document of positions, none of which may name a variable.
                Value::Array(items) => {
                    let position = |(i, v): (usize, &Value)| (i.to_string(), v.clone());
                    defined = Some(Cow::Owned(items.iter().enumerate().map(position).collect()));
                }
                v => bail!(10065, "invalid parameter: expected an object (vars), found {}", v.type_name()),
            },
            "in" => body = Some(v),
            other => bail!(16875, "Unrecognized parameter to $let: {other}"),
        }
    }
    let Some(defined) = defined.as_deref() else { bail!(16876, "Missing 'vars' parameter to $let") };
    let Some(body) = body else { bail!(16877, "Missing 'in' parameter to $let") };
    let mut bindings = Vec::new();
    for (name, v) in defined.iter() {
        check_variable_name(name, true)?;
        bindings.push((name == "CURRENT", parse::expression(v, vars)?));
    }
    let inner = vars.bind_all(defined.keys().filter(|name| *name != "CURRENT"));
    let body = parse::expression(body, &inner)?;
    Ok(Expression::Special(Arc::new(Let { bindings, body })))
}

/// The name of `as`, or `this`.
fn element_name<'a>(d: &'a Document, name: &str) -> Result<&'a str> {
    match d.get("as") {
        None => Ok("this"),
        Some(Value::String(s)) => {
            check_variable_name(s, true)?;
            Ok(s)
        }
        Some(v) => {
            let _ = name;
            check_variable_name(v.as_str().unwrap_or(""), true)?;
            Ok("this")
        }
    }
}

/// What an element of an array is bound to: a position of the stack, or `$$CURRENT`, so that `"$a"` is a field of the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Stacked,
    Current,
}

impl Element {
    /// Reads `as`; the scope is that of the expression evaluated for each element.
    fn parse(d: &Document, name: &str, vars: &Variables) -> Result<(Element, Variables)> {
        Ok(match element_name(d, name)? {
            "CURRENT" => (Element::Current, vars.clone()),
            name => (Element::Stacked, vars.bind(name)),
        })
    }
    fn bind(self, item: Value, vars: &mut Vars) {
        match self {
            Element::Stacked => vars.push(Some(item)),
            Element::Current => vars.push_current(item),
        }
    }
    fn unbind(self, vars: &mut Vars) -> Option<Value> {
        match self {
            Element::Stacked => vars.take_last(),
            Element::Current => vars.pop_current(),
        }
    }
}

#[derive(Debug)]
struct Map {
    input: Expression,
    element: Element,
    each: Expression,
}

impl Node for Map {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        if is_nullish(&input) {
            return Ok(Some(Value::Null));
        }
        let Some(Value::Array(items)) = input else {
            bail!(16883, "input to $map must be an array not {}", type_name(&input));
        };
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            self.element.bind(item, vars);
            let mapped = self.each.eval(root, vars);
            self.element.unbind(vars);
            out.push(mapped?.unwrap_or(Value::Null));
        }
        Ok(Some(Value::Array(out)))
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input, &self.each]
    }
    fn is_pure(&self) -> bool {
        self.element == Element::Stacked
    }
    fn name(&self) -> &'static str {
        "$map"
    }
}

pub fn map(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(16878, "$map only supports an object as its argument") };
    if let Some(bad) = d.keys().find(|k| !["input", "as", "in"].contains(k)) {
        bail!(16879, "Unrecognized parameter to $map: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(16880, "Missing 'input' parameter to $map") };
    let Some(each) = d.get("in") else { bail!(16882, "Missing 'in' parameter to $map") };
    let (element, inner) = Element::parse(d, "$map", vars)?;
    let input = parse::expression(input, vars)?;
    Ok(Expression::Special(Arc::new(Map { input, element, each: parse::expression(each, &inner)? })))
}

#[derive(Debug)]
struct Filter {
    input: Expression,
    element: Element,
    keep: Expression,
    limit: Option<Expression>,
}

impl Node for Filter {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        if is_nullish(&input) {
            return Ok(Some(Value::Null));
        }
        let Some(Value::Array(items)) = input else {
            bail!(28651, "input to $filter must be an array not {}", type_name(&input));
        };
        let limit = self.limit(root, vars)?;
        let mut out = Vec::new();
        for item in items {
            if out.len() >= limit {
                break;
            }
            self.element.bind(item, vars);
            let keep = self.keep.eval_bool(root, vars);
            let item = self.element.unbind(vars);
            if keep? {
                out.push(item.unwrap_or(Value::Null));
            }
        }
        Ok(Some(Value::Array(out)))
    }
    fn children(&self) -> Vec<&Expression> {
        [&self.input, &self.keep].into_iter().chain(&self.limit).collect()
    }
    fn is_pure(&self) -> bool {
        self.element == Element::Stacked
    }
    fn name(&self) -> &'static str {
        "$filter"
    }
}

impl Filter {
    fn limit(&self, root: Doc<'_>, vars: &mut Vars) -> Result<usize> {
        let Some(limit) = &self.limit else { return Ok(usize::MAX) };
        let v = limit.eval(root, vars)?;
        if is_nullish(&v) {
            return Ok(usize::MAX);
        }
        let Some(n) = v.as_ref().and_then(number::exact_i32) else {
            bail!(327391, "$filter: limit must be represented as a 32-bit integral value: {}", show(&v));
        };
        if n <= 0 {
            bail!(327392, "$filter: limit must be greater than 0: {n}");
        }
        Ok(n as usize)
    }
}

fn show(v: &Option<Value>) -> String {
    v.as_ref().map_or("missing".to_string(), parse::show)
}

pub fn filter(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(28646, "$filter only supports an object as its argument") };
    if let Some(bad) = d.keys().find(|k| !["input", "as", "cond", "limit"].contains(k)) {
        bail!(28647, "Unrecognized parameter to $filter: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(28648, "Missing 'input' parameter to $filter") };
    let Some(keep) = d.get("cond") else { bail!(28650, "Missing 'cond' parameter to $filter") };
    let (element, inner) = Element::parse(d, "$filter", vars)?;
    let limit = d.get("limit").map(|v| parse::expression(v, vars)).transpose()?;
    Ok(Expression::Special(Arc::new(Filter {
        input: parse::expression(input, vars)?,
        element,
        keep: parse::expression(keep, &inner)?,
        limit,
    })))
}

#[derive(Debug)]
struct Reduce {
    input: Expression,
    initial: Expression,
    step: Expression,
}

impl Node for Reduce {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        if is_nullish(&input) {
            return Ok(Some(Value::Null));
        }
        let Some(Value::Array(items)) = input else {
            bail!(40080, "$reduce requires that 'input' be an array, found: {}", show(&input));
        };
        let mut value = self.initial.eval(root, vars)?;
        let depth = vars.len();
        for item in items {
            vars.push(Some(item));
            vars.push(value);
            let next = self.step.eval(root, vars);
            vars.truncate(depth);
            value = next?;
            // Each step may wrap what the step before it made, as often as there are elements.
            value.iter().try_for_each(crate::depth::check_value)?;
        }
        Ok(value)
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input, &self.initial, &self.step]
    }
    fn name(&self) -> &'static str {
        "$reduce"
    }
}

pub fn reduce(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(40075, "$reduce requires an object as an argument, found: {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["input", "initialValue", "in"].contains(k)) {
        bail!(40076, "$reduce found an unknown argument: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(40077, "$reduce requires 'input' to be specified") };
    let Some(initial) = d.get("initialValue") else {
        bail!(40078, "$reduce requires 'initialValue' to be specified");
    };
    let Some(step) = d.get("in") else { bail!(40079, "$reduce requires 'in' to be specified") };
    let inner = vars.bind_all(["this", "value"]);
    Ok(Expression::Special(Arc::new(Reduce {
        input: parse::expression(input, vars)?,
        initial: parse::expression(initial, vars)?,
        step: parse::expression(step, &inner)?,
    })))
}
