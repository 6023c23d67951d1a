//! Sort orders, and the blocking sort.
//!
//! A document's sort key is one byte string whose memcmp order is the sort order: the [`document::key_string`] encoding of its components (by the
//! sort's collation), of
//! an array the least (ascending) or the greatest (descending) element. Keys of different shards and of this sort compare alike.

mod sorter;
#[cfg(test)]
mod tests;

pub use sorter::{MEMORY_LIMIT_BYTES, Sorter};

use crate::matcher::Path;
use crate::matcher::ops::geo::Near;
use crate::planner::Direction;
use document::fts::TextQuery;
use document::key_string;
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, number, path};
use std::sync::Arc;

/// The most components a sort may have.
const COMPONENTS_MAX: usize = 32;

/// A parsed sort pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SortSpec {
    /// Path and whether it descends.
    components: Vec<(String, bool)>,
    natural: Option<Direction>,
    collation: Collation,
    /// Sorts by the distance at a path instead.
    near: Option<Arc<(Path, Near)>>,
    /// The positions of components that are a text score, which descends; its query is given where one is known.
    scores: Vec<usize>,
    text: Option<Arc<TextQuery>>,
}

impl SortSpec {
    /// Errors are the real server's: 15974 and 15975 for a bad direction, 13103 for too many components.
    pub fn parse(spec: Doc<'_>) -> Result<SortSpec> {
        let mut out = SortSpec::default();
        for e in spec {
            let by_score = is_score(e.value());
            let descending = by_score || direction(e.name(), e.value())?;
            if by_score {
                out.scores.push(out.components.len());
            }
            if e.name() == "$natural" {
                out.natural = Some(if descending { Direction::Backward } else { Direction::Forward });
                continue;
            }
            field_path(e.name())?;
            if out.components.iter().any(|(p, _)| p == e.name()) {
                bail!(
                    7472500,
                    "sort specification cannot contain two values for the same key '{}'",
                    e.name()
                );
            }
            out.components.push((e.name().to_string(), descending));
            if out.components.len() > COMPONENTS_MAX {
                bail!(13103, "too many compound keys");
            }
        }
        if out.natural.is_some() && spec.iter().count() > 1 {
            bail!(BAD_VALUE, "Cannot include '$natural' in compound sort: {}", crate::text::document(spec));
        }
        Ok(out)
    }
    /// The same sort with strings in the collation's order.
    pub fn with_collation(mut self, collation: &Collation) -> SortSpec {
        self.collation = collation.clone();
        self
    }
    pub fn collation(&self) -> &Collation {
        &self.collation
    }
    /// The same sort with the query whose score it may ask for.
    ///
    /// # Errors
    /// 40218 when it asks for a score and there is no `$text`.
    pub fn with_text(mut self, text: Option<&Arc<TextQuery>>) -> Result<SortSpec> {
        if !self.scores.is_empty() && text.is_none() {
            bail!(40218, "query requires text score metadata, but it is not available");
        }
        self.text = text.cloned();
        Ok(self)
    }
    /// Whether it sorts by a score, which no index holds.
    pub fn by_score(&self) -> bool {
        !self.scores.is_empty()
    }
    /// The order of a near predicate on `path`: the nearest first.
    pub fn by_distance(path: &str, near: &Near) -> SortSpec {
        SortSpec { near: Some(Arc::new((Path::new(path), near.clone()))), ..SortSpec::default() }
    }
    /// Sorts nothing: an empty pattern.
    pub fn is_empty(&self) -> bool {
        self.components.is_empty() && self.near.is_none()
    }
    /// `{$natural: n}`: the order of the records themselves.
    pub fn natural(&self) -> Option<Direction> {
        self.natural
    }
    /// Path and whether it descends, for each component.
    pub fn components(&self) -> &[(String, bool)] {
        &self.components
    }
    /// The pattern as a document.
    pub fn to_document(&self) -> Document {
        let direction = |i: usize, descending: bool| match self.scores.contains(&i) {
            true => document::doc! { "$meta": "textScore" }.into(),
            false => Value::Int32(if descending { -1 } else { 1 }),
        };
        self.components.iter().enumerate().map(|(i, (p, d))| (p.clone(), direction(i, *d))).collect()
    }
    /// A key whose memcmp order is the sort order. Error: BadValue for arrays in two components.
    pub fn key(&self, doc: Doc<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.components.len() * 12);
        if let Some((path, near)) = self.near.as_deref() {
            let distance = near.distance_at(path, doc)?.unwrap_or(f64::INFINITY);
            key_string::append(&mut out, ValueRef::Double(distance), false);
            return Ok(out);
        }
        if self.by_score() {
            return self.key_with_score(doc, out);
        }
        if self.append_plain(doc, &mut out) {
            return Ok(out);
        }
        out.clear();
        for (v, (_, descending)) in self.values(doc)?.into_iter().zip(&self.components) {
            self.collation.append_key(&mut out, v, *descending);
        }
        Ok(out)
    }
    /// The values that a document is sorted by, one for each component: of an array the one that its order asks for, null for nothing.
    ///
    /// # Errors
    /// BadValue (2) for arrays in two components.
    pub fn values<'a>(&self, doc: Doc<'a>) -> Result<Vec<ValueRef<'a>>> {
        let pattern: Vec<(&str, bool)> = self.components.iter().map(|(p, d)| (p.as_str(), *d)).collect();
        path::sort_key(doc, &pattern, &self.collation)
    }
    fn key_with_score(&self, doc: Doc<'_>, mut out: Vec<u8>) -> Result<Vec<u8>> {
        for (i, (path, descending)) in self.components.iter().enumerate() {
            if self.scores.contains(&i) {
                let score = self.text.as_ref().map_or(0.0, |q| q.score(doc));
                self.collation.append_key(&mut out, ValueRef::Double(score), true);
                continue;
            }
            for v in path::sort_key(doc, &[(path.as_str(), *descending)], &self.collation)? {
                self.collation.append_key(&mut out, v, *descending);
            }
        }
        Ok(out)
    }
    /// The key when no array is met; false otherwise.
    fn append_plain(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> bool {
        self.components.iter().all(|(path, descending)| match plain_value(doc, path) {
            Some(v) => {
                self.collation.append_key(out, v, *descending);
                true
            }
            None => false,
        })
    }
}

/// The value at a path (null when missing); `None` when an array is on the way or at the end.
fn plain_value<'d>(doc: Doc<'d>, path: &str) -> Option<ValueRef<'d>> {
    let (mut doc, mut path) = (doc, path);
    loop {
        let (head, rest) = match path.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (path, None),
        };
        match (doc.get(head), rest) {
            (Some(ValueRef::Array(_)), _) => return None,
            (Some(ValueRef::Document(d)), Some(rest)) => (doc, path) = (d, rest),
            (Some(v), None) => return Some(v),
            _ => return Some(ValueRef::Null),
        }
    }
}

fn is_score(v: ValueRef<'_>) -> bool {
    matches!(v, ValueRef::Document(d) if d.get_str("$meta") == Some("textScore"))
}

/// Whether the order descends. A double is cut and a decimal rounded, as the real server reads a number.
///
/// # Errors
/// 15974, 15975; 31138 for metadata that nothing is sorted by.
pub(crate) fn direction(name: &str, v: ValueRef<'_>) -> Result<bool> {
    if let ValueRef::Document(d) = v {
        if d.get("$meta").is_some() {
            bail!(31138, "Illegal $meta sort: {name}: {}", crate::text::document(d));
        }
        bail!(17312, "$meta is the only expression supported by $sort right now");
    }
    if !v.is_number() {
        bail!(15974, "Illegal key in $sort specification: {name}: {}", crate::text::value(v));
    }
    let order = match v {
        ValueRef::Decimal128(d) => Some(d.round().to_i64_saturating()),
        v => number::to_i64_saturating(&v.to_value()),
    };
    match order {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => bail!(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"),
    }
}

/// The real server's rules for paths in sorts and projections.
pub(crate) fn field_path(path: &str) -> Result<()> {
    if path.is_empty() {
        bail!(40352, "FieldPath cannot be constructed with empty string");
    }
    if path.ends_with('.') {
        bail!(40353, "FieldPath must not end with a '.'.");
    }
    crate::depth::check_path_length(path.split('.').count())?;
    for part in path.split('.') {
        if part.is_empty() {
            bail!(15998, "FieldPath field names may not be empty strings.");
        }
        if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
            bail!(
                16410,
                "FieldPath field names may not start with '$'. Consider using $getField or $setField."
            );
        }
    }
    Ok(())
}
