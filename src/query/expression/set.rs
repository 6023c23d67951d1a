//! Arrays as sets: order and repetition do not matter, equality is the query language's.

use super::{Arg, Eval, Expression, Variables, is_nullish, parse, table, type_name};
use document::{Error, Result, Value, bail, key_string};
use std::collections::HashSet;

fn key(v: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    key_string::append_value(&mut out, v, false);
    out
}
fn keys(items: &[Value]) -> HashSet<Vec<u8>> {
    items.iter().map(key).collect()
}
fn array(mut v: Vec<Value>) -> Eval {
    v.sort_by(document::compare::compare_values);
    Ok(Some(Value::Array(v)))
}
fn answer(b: bool) -> Eval {
    Ok(Some(Value::Boolean(b)))
}

/// The distinct values of `items` that `keep` accepts, each once.
fn distinct(items: Vec<Value>, seen: &mut HashSet<Vec<u8>>, out: &mut Vec<Value>) {
    for v in items {
        if seen.insert(key(&v)) {
            out.push(v);
        }
    }
}

pub fn union(args: &mut [Arg]) -> Eval {
    let (mut seen, mut out) = (HashSet::new(), Vec::new());
    for a in args.iter_mut() {
        match a.take() {
            v if is_nullish(&v) => return Ok(Some(Value::Null)),
            Some(Value::Array(items)) => distinct(items, &mut seen, &mut out),
            v => bail!(
                17043,
                "All operands of $setUnion must be arrays. One argument is of type: {}",
                type_name(&v)
            ),
        }
    }
    array(out)
}

pub fn intersection(args: &mut [Arg]) -> Eval {
    let mut common: Option<Vec<Value>> = None;
    for a in args.iter_mut() {
        let items = match a.take() {
            v if is_nullish(&v) => return Ok(Some(Value::Null)),
            Some(Value::Array(items)) => items,
            v => bail!(
                17047,
                "All operands of $setIntersection must be arrays. One argument is of type: {}",
                type_name(&v)
            ),
        };
        common = Some(match common {
            None => {
                let mut out = Vec::new();
                distinct(items, &mut HashSet::new(), &mut out);
                out
            }
            Some(before) => {
                let now = keys(&items);
                before.into_iter().filter(|v| now.contains(&key(v))).collect()
            }
        });
    }
    array(common.unwrap_or_default())
}

pub fn difference(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return Ok(Some(Value::Null));
    }
    let Some(Value::Array(a)) = args[0].take_if(|v| matches!(v, Value::Array(_))) else {
        bail!(
            17048,
            "both operands of $setDifference must be arrays. First argument is of type: {}",
            type_name(&args[0])
        );
    };
    let Some(Value::Array(b)) = &args[1] else {
        bail!(
            17049,
            "both operands of $setDifference must be arrays. Second argument is of type: {}",
            type_name(&args[1])
        );
    };
    let mut seen = keys(b);
    let mut out = Vec::new();
    distinct(a, &mut seen, &mut out);
    Ok(Some(Value::Array(out)))
}

pub fn is_subset(args: &mut [Arg]) -> Eval {
    let Some(Value::Array(a)) = &args[0] else {
        bail!(
            17046,
            "both operands of $setIsSubset must be arrays. First argument is of type: {}",
            type_name(&args[0])
        );
    };
    let Some(Value::Array(b)) = &args[1] else {
        bail!(
            17042,
            "both operands of $setIsSubset must be arrays. Second argument is of type: {}",
            type_name(&args[1])
        );
    };
    answer(keys(a).is_subset(&keys(b)))
}

fn equals_values(args: &mut [Arg]) -> Eval {
    let mut first: Option<HashSet<Vec<u8>>> = None;
    let mut equal = true;
    for (i, a) in args.iter().enumerate() {
        let Some(Value::Array(items)) = a else {
            bail!(
                17044,
                "All operands of $setEquals must be arrays. {}-th argument is of type: {}",
                i + 1,
                type_name(a)
            );
        };
        let now = keys(items);
        match &first {
            None => first = Some(now),
            Some(f) => equal &= *f == now,
        }
    }
    answer(equal)
}

pub fn equals(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let args = parse::arguments(v, vars)?;
    if args.len() < 2 {
        bail!(17045, "$setEquals needs at least two arguments had: {}", args.len());
    }
    for (i, a) in args.iter().enumerate() {
        if let Some(v) = a.as_constant()
            && !matches!(v, Value::Array(_))
        {
            let text = format!(
                "All operands of $setEquals must be arrays. {}-th argument is of type: {}",
                i + 1,
                v.type_name()
            );
            return Err(Error::new(5887502, text));
        }
    }
    let Some(row) = table::find(name) else { bail!(INTERNAL_ERROR, "no row for {name}") };
    Ok(Expression::Call(row, equals_values, args))
}

pub fn all_elements_true(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::Array(items)) => answer(items.iter().all(Value::truthy)),
        v => bail!(17040, "$allElementsTrue's argument must be an array, but is {}", type_name(v)),
    }
}
pub fn any_element_true(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::Array(items)) => answer(items.iter().any(Value::truthy)),
        v => bail!(17041, "$anyElementTrue's argument must be an array, but is {}", type_name(v)),
    }
}
