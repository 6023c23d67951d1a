//! The BSON order.
//!
//! Values compare by the rank of their type, then by value. Inside documents each field compares by type, then name,
//! then value; a document that is a prefix of another comes first. Array positions are not compared as names.
//! Recursion is bounded by the depth that validation admits.

use crate::collation::Collator;
use crate::{Doc, Document, ObjectId, Value, ValueRef, number};
use std::cmp::Ordering;

/// The rank of a type in the BSON order; types of one rank (the numbers; string and symbol) compare by value.
/// Apart from MinKey the ranks are the real server's, because they enter hashes.
#[inline]
pub fn canonical_type(tag: u8) -> u8 {
    match tag {
        0xFF => 0,
        0x06 => 1,
        0x0A => 5,
        0x01 | 0x10 | 0x12 | 0x13 => 10,
        0x02 | 0x0E => 15,
        0x03 => 20,
        0x04 => 25,
        0x05 => 30,
        0x07 => 35,
        0x08 => 40,
        0x09 => 45,
        0x11 => 47,
        0x0B => 50,
        0x0C => 55,
        0x0D => 60,
        0x0F => 65,
        _ => 127,
    }
}

/// BSON order: by canonical type, then by value. Numbers of all four types compare by exact value, strings by their
/// bytes. Who has a collation asks [`crate::Collation`].
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    compare_with(a, b, None)
}

/// BSON order with strings in the collator's order.
pub(crate) fn compare_with(a: ValueRef<'_>, b: ValueRef<'_>, collator: Option<&Collator>) -> Ordering {
    if let (ValueRef::String(a), ValueRef::String(b)) = (a, b) {
        return compare_strings(a, b, collator);
    }
    if let Some(order) = number::compare(a, b) {
        return order;
    }
    match canonical_type(a.tag()).cmp(&canonical_type(b.tag())) {
        Ordering::Equal => compare_same_type(a, b, collator),
        order => order,
    }
}

#[inline]
fn compare_strings(a: &str, b: &str, collator: Option<&Collator>) -> Ordering {
    match collator {
        None => a.cmp(b),
        Some(collator) => collator.compare(a, b),
    }
}

fn compare_same_type(a: ValueRef<'_>, b: ValueRef<'_>, collator: Option<&Collator>) -> Ordering {
    use ValueRef::*;
    match (a, b) {
        (String(a) | Symbol(a), String(b) | Symbol(b)) => compare_strings(a, b, collator),
        (JavaScript(a), JavaScript(b)) => a.cmp(b),
        (Document(a), Document(b)) => compare_fields(a, b, true, collator),
        (Array(a), Array(b)) => compare_fields(a, b, false, collator),
        (Binary(sa, a), Binary(sb, b)) => binary_order(sa, a).cmp(&binary_order(sb, b)),
        (ObjectId(a), ObjectId(b)) => a.cmp(&b),
        (Boolean(a), Boolean(b)) => a.cmp(&b),
        (DateTime(a), DateTime(b)) => a.cmp(&b),
        (Timestamp(a), Timestamp(b)) => a.cmp(&b),
        (Regex(pa, oa), Regex(pb, ob)) => (pa, oa).cmp(&(pb, ob)),
        (DbPointer(na, ia), DbPointer(nb, ib)) => pointer_order(na, &ia).cmp(&pointer_order(nb, &ib)),
        (JavaScriptWithScope(ca, sa), JavaScriptWithScope(cb, sb)) => {
            ca.cmp(cb).then_with(|| compare_docs(sa, sb))
        }
        _ => Ordering::Equal,
    }
}

fn binary_order(subtype: u8, bytes: &[u8]) -> (usize, u8, &[u8]) {
    (bytes.len(), subtype, bytes)
}

fn pointer_order<'a>(ns: &'a str, id: &'a ObjectId) -> (usize, &'a str, &'a ObjectId) {
    (ns.len(), ns, id)
}

/// Field by field: type, then name, then value; a prefix comes first.
pub fn compare_docs(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    compare_fields(a, b, true, None)
}

fn compare_fields(a: Doc<'_>, b: Doc<'_>, names: bool, collator: Option<&Collator>) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        let (x, y) = match (left.next(), right.next()) {
            (Some(x), Some(y)) => (x, y),
            (None, None) => return Ordering::Equal,
            (x, _) => return if x.is_none() { Ordering::Less } else { Ordering::Greater },
        };
        if x.whole() == y.whole() {
            continue;
        }
        let mut order = canonical_type(x.tag()).cmp(&canonical_type(y.tag()));
        if names {
            order = order.then_with(|| x.name_bytes().cmp(y.name_bytes()));
        }
        let order = order.then_with(|| compare_with(x.value(), y.value(), collator));
        if order.is_ne() {
            return order;
        }
    }
}

/// As [`compare`], on owned values and without encoding them.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    compare_values_with(a, b, None)
}

pub(crate) fn compare_values_with(a: &Value, b: &Value, collator: Option<&Collator>) -> Ordering {
    match (a, b) {
        (Value::Document(a), Value::Document(b)) => compare_documents_with(a, b, collator),
        (Value::Array(a), Value::Array(b)) => {
            let mut orders = a.iter().zip(b).map(|(x, y)| compare_values_with(x, y, collator));
            orders.find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::JavaScriptWithScope(a), Value::JavaScriptWithScope(b)) => {
            a.code.cmp(&b.code).then_with(|| compare_documents(&a.scope, &b.scope))
        }
        _ => match (a.as_scalar(), b.as_scalar()) {
            (Some(a), Some(b)) => compare_with(a, b, collator),
            _ => canonical_type(a.tag()).cmp(&canonical_type(b.tag())),
        },
    }
}

pub fn compare_documents(a: &Document, b: &Document) -> Ordering {
    compare_documents_with(a, b, None)
}

pub(crate) fn compare_documents_with(a: &Document, b: &Document, collator: Option<&Collator>) -> Ordering {
    let mut orders = a.iter().zip(b.iter()).map(|((na, x), (nb, y))| {
        let types = canonical_type(x.tag()).cmp(&canonical_type(y.tag()));
        types.then_with(|| na.cmp(nb)).then_with(|| compare_values_with(x, y, collator))
    });
    orders.find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    compare(a, b).is_eq()
}
pub fn values_equal(a: &Value, b: &Value) -> bool {
    compare_values(a, b).is_eq()
}
