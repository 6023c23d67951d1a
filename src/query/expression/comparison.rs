//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: BSON order, where missing is below everything but MinKey.

use super::{Arg, Eval};
use document::{Collation, Value};
use std::cmp::Ordering;

/// The order of two arguments; missing sorts as undefined does.
pub fn order(a: &Arg, b: &Arg, c: &Collation) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => c.compare_values(a, b),
        (None, None) => Ordering::Equal,
        (None, Some(b)) => compare_missing(b),
        (Some(a), None) => compare_missing(a).reverse(),
    }
}

fn compare_missing(other: &Value) -> Ordering {
    match other {
        Value::MinKey => Ordering::Greater,
        _ => Ordering::Less,
    }
}

pub fn cmp(a: &mut [Arg], c: &Collation) -> Eval {
    Ok(Some(Value::Int32(order(&a[0], &a[1], c) as i32)))
}
fn answer(b: bool) -> Eval {
    Ok(Some(Value::Boolean(b)))
}
pub fn eq(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_eq())
}
pub fn ne(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_ne())
}
pub fn gt(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_gt())
}
pub fn gte(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_ge())
}
pub fn lt(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_lt())
}
pub fn lte(a: &mut [Arg], c: &Collation) -> Eval {
    answer(order(&a[0], &a[1], c).is_le())
}
