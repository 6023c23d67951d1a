//! The BSON order.
use crate::{Doc, Value, ValueRef};
use std::cmp::Ordering;

/// The rank of a type in the BSON order; types of one rank (the numbers; string and symbol) compare by value.
pub fn canonical_type(_tag: u8) -> u8 {
    todo!()
}
/// BSON order: by canonical type, then by value. Numbers of all four types compare by exact value.
pub fn compare(_a: ValueRef<'_>, _b: ValueRef<'_>) -> Ordering {
    todo!()
}
pub fn compare_values(_a: &Value, _b: &Value) -> Ordering {
    todo!()
}
/// Field by field: type, then name, then value; a prefix comes first.
pub fn compare_docs(_a: Doc<'_>, _b: Doc<'_>) -> Ordering {
    todo!()
}
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    compare(a, b).is_eq()
}
pub fn values_equal(a: &Value, b: &Value) -> bool {
    compare_values(a, b).is_eq()
}
