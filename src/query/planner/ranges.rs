//! From the intervals of each index field to byte ranges of encoded keys.
//!
//! Points on the first fields multiply into prefixes; the first field that is no set of points ends the prefix with its ranges; what the
//! fields after it say cannot narrow a contiguous range.
//!
//! ```text
//! {a: 1, b: -1}   a in [1],[2]   b in (5, inf]     =>   1.~inf .. 1.~5   2.~inf .. 2.~5        (~ inverted bytes)
//! ```

use super::bounds::{Interval, Intervals};
use document::{Value, hash, key_string};

/// The fields' values are not multiplied to more ranges than this; a wider one stands for them. The values of one field, all of which the
/// query names, are never too many.
const RANGES_MAX: usize = 4096;

/// A range of encoded keys. Bounds are prefixes: an inclusive bound takes in every key that begins with it, an exclusive
/// one leaves all of those out. An empty inclusive bound is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub lo: Vec<u8>,
    pub lo_inclusive: bool,
    pub hi: Vec<u8>,
    pub hi_inclusive: bool,
}

impl KeyRange {
    pub fn everything() -> KeyRange {
        KeyRange { lo: Vec::new(), lo_inclusive: true, hi: Vec::new(), hi_inclusive: true }
    }
    /// The least key that can be in the range; `None` when there is none.
    pub fn start(&self) -> Option<Vec<u8>> {
        if self.lo_inclusive { Some(self.lo.clone()) } else { prefix_end(&self.lo) }
    }
    /// The least key above the range; `None` when nothing is above it.
    pub fn end(&self) -> Option<Vec<u8>> {
        if self.hi_inclusive { prefix_end(&self.hi) } else { Some(self.hi.clone()) }
    }
    pub fn contains(&self, key: &[u8]) -> bool {
        let above = if self.lo_inclusive {
            key >= &self.lo[..]
        } else {
            key > &self.lo[..] && !key.starts_with(&self.lo)
        };
        let below = key < &self.hi[..] || (self.hi_inclusive && key.starts_with(&self.hi));
        above && below
    }
}

/// The least bytes above everything that begins with `prefix`.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|b| *b != 0xFF)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}

/// How a field's component is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Ascending,
    Descending,
    Hashed,
    /// Ids of cells: of a `2dsphere`, `2d` or `2dsphere_bucket` index.
    Place,
}

impl FieldKind {
    /// Of the value in a key pattern; `None` for kinds this planner cannot use.
    pub(super) fn of(v: &Value) -> Option<FieldKind> {
        match v {
            Value::String(s) if s == "hashed" => Some(FieldKind::Hashed),
            Value::String(s) if ["2d", "2dsphere", "2dsphere_bucket"].contains(&s.as_str()) => {
                Some(FieldKind::Place)
            }
            v if v.is_number() => Some(if document::number::as_f64(v)? < 0.0 {
                FieldKind::Descending
            } else {
                FieldKind::Ascending
            }),
            _ => None,
        }
    }
    fn append(self, out: &mut Vec<u8>, v: &Value) {
        match self {
            FieldKind::Ascending | FieldKind::Place => key_string::append_value(out, v, false),
            FieldKind::Descending => key_string::append_value(out, v, true),
            FieldKind::Hashed => key_string::append_value(out, &Value::Int64(hash::hash64_value(v)), false),
        }
    }
}

/// The ranges, ascending, and how many leading fields they decide.
pub(super) fn build(fields: &[(FieldKind, &Intervals)]) -> (Vec<KeyRange>, usize) {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    for (decided, (kind, intervals)) in fields.iter().enumerate() {
        let usable = *kind != FieldKind::Hashed || intervals.is_points();
        let (held, listed) = (prefixes.len(), intervals.list.len());
        let fits = held.saturating_mul(listed) <= RANGES_MAX.max(held).max(listed);
        if !usable || intervals.is_everything() || !fits {
            return (prefixes.into_iter().map(whole).collect(), decided);
        }
        if intervals.is_points() {
            prefixes = extend(&prefixes, *kind, &intervals.list);
        } else {
            let mut ranges: Vec<KeyRange> = prefixes
                .iter()
                .flat_map(|p| intervals.list.iter().map(move |i| range(p, *kind, i)))
                .collect();
            ranges.sort_by(|a, b| a.lo.cmp(&b.lo));
            return (ranges, decided + 1);
        }
    }
    (prefixes.into_iter().map(whole).collect(), fields.len())
}

fn whole(prefix: Vec<u8>) -> KeyRange {
    KeyRange { lo: prefix.clone(), lo_inclusive: true, hi: prefix, hi_inclusive: true }
}

fn extend(prefixes: &[Vec<u8>], kind: FieldKind, points: &[Interval]) -> Vec<Vec<u8>> {
    let mut out = Vec::with_capacity(prefixes.len() * points.len());
    for prefix in prefixes {
        for point in points {
            let mut key = prefix.clone();
            kind.append(&mut key, &point.lo);
            out.push(key);
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn range(prefix: &[u8], kind: FieldKind, i: &Interval) -> KeyRange {
    let key = |v: &Value| {
        let mut key = prefix.to_vec();
        kind.append(&mut key, v);
        key
    };
    let (lo, hi) = (key(&i.lo), key(&i.hi));
    match kind {
        FieldKind::Descending => {
            KeyRange { lo: hi, lo_inclusive: i.hi_inclusive, hi: lo, hi_inclusive: i.lo_inclusive }
        }
        _ => KeyRange { lo, lo_inclusive: i.lo_inclusive, hi, hi_inclusive: i.hi_inclusive },
    }
}
