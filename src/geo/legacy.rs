//! Legacy points: `[x, y]`, or a document whose first two members are numbers.

use document::{Doc, ValueRef};

/// A pair of plane coordinates, x first; on the sphere longitude and latitude in degrees.
pub type Pair = (f64, f64);

/// The members of an array or document as a pair. Further members are ignored.
pub fn pair(d: Doc<'_>) -> Option<Pair> {
    let mut members = d.iter().map(|e| number(e.value()));
    let (x, y) = (members.next()??, members.next()??);
    (x.is_finite() && y.is_finite()).then_some((x, y))
}

/// A number of any type as a double.
pub fn number(v: ValueRef<'_>) -> Option<f64> {
    match v {
        ValueRef::Decimal128(_) => document::number::as_f64(&v.to_value()),
        v => v.as_f64(),
    }
}

/// A stored or given point in one of the legacy forms.
pub fn point(v: ValueRef<'_>) -> Option<Pair> {
    match v {
        ValueRef::Array(d) | ValueRef::Document(d) => pair(d),
        _ => None,
    }
}

/// A legacy point that has exactly two members.
pub fn exact_point(v: ValueRef<'_>) -> Option<Pair> {
    match v {
        ValueRef::Array(d) | ValueRef::Document(d) if d.iter().count() == 2 => pair(d),
        _ => None,
    }
}
