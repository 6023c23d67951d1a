//! Arrays as sets: order and repetition do not matter, equality is the query language's.

use super::{Arg, Eval, Expression, Variables, is_nullish, parse, table, type_name};
use crate::merge_sort::merge_sort;
use document::{Collation, Error, Result, Value, bail, meter};
use std::collections::HashSet;

/// Bytes of a key that are made and hashed in the time of a unit of work.
const KEY_BYTES_A_UNIT: usize = 64;

/// # Errors
/// Those of [`meter::spend`].
fn key(v: &Value, c: &Collation) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    c.append_value_key(&mut out, v, false);
    meter::spend(1 + out.len() / KEY_BYTES_A_UNIT)?;
    Ok(out)
}
fn keys(items: &[Value], c: &Collation) -> Result<HashSet<Vec<u8>>> {
    items.iter().map(|v| key(v, c)).collect()
}
fn array(mut v: Vec<Value>, c: &Collation) -> Eval {
    merge_sort(&mut v, |a, b| c.compare_values(a, b))?;
    Ok(Some(Value::Array(v)))
}
fn answer(b: bool) -> Eval {
    Ok(Some(Value::Boolean(b)))
}

/// Adds to `out` the values of `items` that were not seen, each once.
fn distinct(
    items: Vec<Value>,
    seen: &mut HashSet<Vec<u8>>,
    out: &mut Vec<Value>,
    c: &Collation,
) -> Result<()> {
    for v in items {
        if seen.insert(key(&v, c)?) {
            out.push(v);
        }
    }
    Ok(())
}

pub fn union(args: &mut [Arg], c: &Collation) -> Eval {
    let (mut seen, mut out) = (HashSet::new(), Vec::new());
    for a in args.iter_mut() {
        match a.take() {
            v if is_nullish(&v) => return Ok(Some(Value::Null)),
            Some(Value::Array(items)) => distinct(items, &mut seen, &mut out, c)?,
            v => bail!(
                17043,
                "All operands of $setUnion must be arrays. One argument is of type: {}",
                type_name(&v)
            ),
        }
    }
    array(out, c)
}

pub fn intersection(args: &mut [Arg], c: &Collation) -> Eval {
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
                distinct(items, &mut HashSet::new(), &mut out, c)?;
                out
            }
            Some(before) => {
                let now = keys(&items, c)?;
                let mut kept = Vec::new();
                for v in before {
                    if now.contains(&key(&v, c)?) {
                        kept.push(v);
                    }
                }
                kept
            }
        });
    }
    array(common.unwrap_or_default(), c)
}

pub fn difference(args: &mut [Arg], c: &Collation) -> Eval {
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
    let mut seen = keys(b, c)?;
    let mut out = Vec::new();
    distinct(a, &mut seen, &mut out, c)?;
    Ok(Some(Value::Array(out)))
}

pub fn is_subset(args: &mut [Arg], c: &Collation) -> Eval {
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
    answer(keys(a, c)?.is_subset(&keys(b, c)?))
}

fn equals_values(args: &mut [Arg], c: &Collation) -> Eval {
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
        let now = keys(items, c)?;
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
    let function = table::Function::Comparing(equals_values, vars.collation().clone());
    Ok(Expression::Call(row, function, args))
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
