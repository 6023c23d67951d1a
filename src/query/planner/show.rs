//! What explain prints of a scan. The planner compares many scans and shows few, so it is worked out when it is asked for.

use super::bounds::{Interval, Intervals};
use super::ranges::FieldKind;
use super::{Direction, IndexScan, wildcard};
use crate::matcher::Matcher;
use crate::text;
use document::{Document, Value, collation, doc};
use std::sync::Arc;

/// Where a scan begins and ends.
#[derive(Clone, Debug)]
pub enum Bounds {
    /// For each field of the index.
    Fields(Arc<[Intervals]>),
    /// As they were given, or as they are printed.
    Given(Document),
}

impl Bounds {
    pub(super) fn of(fields: Vec<Intervals>) -> Bounds {
        Bounds::Fields(fields.into())
    }
}

impl IndexScan {
    /// `indexBounds`; for a scan in the order of the clustered index `minRecord` and `maxRecord`, empty where it has no bounds.
    pub fn shown_bounds(&self) -> Document {
        match &self.bounds {
            Bounds::Given(shown) => shown.clone(),
            Bounds::Fields(fields) if self.clustered => records(fields),
            Bounds::Fields(fields) => self.intervals(fields),
        }
    }

    fn intervals(&self, fields: &[Intervals]) -> Document {
        let mut out = Document::new();
        for ((path, direction), intervals) in self.key.iter().zip(fields) {
            let kind = FieldKind::of(direction);
            let value = |v: &Value, is_point: bool| match kind {
                Some(FieldKind::Hashed) if is_point => document::hash::hash64_value(v).to_string(),
                _ if !self.collation.is_simple() && path != wildcard::PATH => collated(v),
                _ => plain(v),
            };
            let turned = (kind == Some(FieldKind::Descending)) != (self.direction == Direction::Backward);
            let mut list: Vec<Value> = intervals.list.iter().map(|i| printed(i, turned, value)).collect();
            if turned {
                list.reverse();
            }
            out.push(path, Value::Array(list));
        }
        out
    }

    /// `indexBounds` of a count that needs no documents: of one range of one index that decides the whole filter.
    pub(crate) fn count_bounds(&self, filter: &Matcher) -> Option<Document> {
        let Bounds::Fields(fields) = &self.bounds else { return None };
        let one_range = self.ranges.len() == 1 && !self.clustered && filter.is_always_true();
        if !one_range {
            return None;
        }
        let (mut start, mut end) = (Document::new(), Document::new());
        let (mut start_inclusive, mut end_inclusive) = (true, true);
        for ((path, descending), field) in self.key.keys().zip(self.descending()).zip(fields.iter()) {
            let i = field.list.first()?;
            let mut ends = [(&i.lo, i.lo_inclusive), (&i.hi, i.hi_inclusive)];
            if descending {
                ends.reverse();
            }
            let [first, last] = ends;
            start_inclusive &= first.1;
            end_inclusive &= last.1;
            start.push(path, first.0.clone());
            end.push(path, last.0.clone());
        }
        Some(doc! {
            "startKey": start, "startKeyInclusive": start_inclusive, "endKey": end, "endKeyInclusive": end_inclusive
        })
    }
}

/// An interval in the words of the real server.
fn printed(i: &Interval, turned: bool, value: impl Fn(&Value, bool) -> String) -> Value {
    let point = i.is_point();
    let (lo, hi) = (value(&i.lo, point), value(&i.hi, point));
    let (first, first_in, last, last_in) = match turned {
        true => (hi, i.hi_inclusive, lo, i.lo_inclusive),
        false => (lo, i.lo_inclusive, hi, i.hi_inclusive),
    };
    let (open, close) = (if first_in { '[' } else { '(' }, if last_in { ']' } else { ')' });
    Value::from(format!("{open}{first}, {last}{close}"))
}

/// A bound; what is no finite number is shown as doubles without a fraction are.
fn plain(v: &Value) -> String {
    match v {
        Value::Double(d) if !d.is_finite() => format!("{}.0", text::owned(v)),
        v => text::owned(v),
    }
}

/// A bound of an index with a collation: strings are shown by their sort keys.
fn collated(v: &Value) -> String {
    match v {
        Value::String(key) if !key.is_empty() => {
            format!("CollationKey(0x{})", document::encoding::hex(&collation::sort_key_bytes(key)))
        }
        other => plain(other),
    }
}

/// The first and the last `_id` that a bounded scan of a clustered collection can meet.
fn records(fields: &[Intervals]) -> Document {
    let mut out = Document::new();
    let Some((first, last)) = fields.first().and_then(|f| Some((f.list.first()?, f.list.last()?))) else {
        return out;
    };
    if !matches!(first.lo, Value::MinKey) {
        out.push("minRecord", first.lo.clone());
    }
    if !matches!(last.hi, Value::MaxKey) {
        out.push("maxRecord", last.hi.clone());
    }
    out
}
