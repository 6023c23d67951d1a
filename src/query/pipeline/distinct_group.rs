//! A `$group` that needs one document of each group, so that an index can lead from one group to the next.
//!
//! ```text
//! {_id: "$a"}                                                    any document
//! {_id: "$a", x: {$first: ..}}   behind a sort by a, then b      the first by a, b
//! {_id: "$a", x: {$last: ..}}    behind a sort by a, then b      the first by the reverse
//! {_id: "$a", x: {$top: {sortBy: {b: 1}, output: ..}}}           the first by a, b or by -a, b
//! ```

use crate::planner::Distinct;
use crate::sort::SortSpec;
use document::{Collation, Document, Value};

/// What such a group asks for.
#[derive(Clone, Debug)]
pub struct DistinctGroup {
    pub distinct: Distinct,
    /// The document that it makes of each one, as an expression.
    pub new_root: Document,
}

/// The accumulator of all fields, with its argument in each.
struct Taken<'a> {
    name: &'a str,
    arguments: Vec<(&'a str, &'a Value)>,
}

impl DistinctGroup {
    /// `sort`: the order of what is grouped; `collation`: that of the pipeline. `None` where the groups need more than one document each.
    pub(super) fn of(
        spec: &Document,
        sort: Option<&SortSpec>,
        collation: &Collation,
    ) -> Option<DistinctGroup> {
        // A half of a group of several shards.
        if spec.contains_key("$willBeMerged") || spec.contains_key("$doingMerge") {
            return None;
        }
        let path = spec.get_str("_id")?.strip_prefix('$').filter(|p| !p.starts_with('$'))?;
        let taken = Taken::of(spec)?;
        let orders = match taken.as_ref().map(|t| t.name) {
            None => Vec::new(),
            Some("$first") => vec![sort_of(&behind(path, sort?)?, collation)?],
            Some("$last") => vec![sort_of(&reversed(&behind(path, sort?)?), collation)?],
            Some("$top" | "$bottom") if sort.is_none() => taken.as_ref()?.orders(path, collation)?,
            Some(_) => return None,
        };
        let mut new_root = Document::new();
        new_root.push("_id", format!("${path}"));
        for (field, argument) in taken.iter().flat_map(|t| &t.arguments) {
            let output = argument.as_document().and_then(|d| d.get("output"));
            let is_top = taken.as_ref().is_some_and(|t| t.sorts());
            new_root.push(*field, output.filter(|_| is_top).unwrap_or(argument).clone());
        }
        let distinct = Distinct { path: path.to_string(), orders, grouped: true };
        Some(DistinctGroup { distinct, new_root })
    }
}

impl<'a> Taken<'a> {
    /// `Some(None)`: the group has no fields beside its key. `None`: its accumulators differ.
    fn of(spec: &'a Document) -> Option<Option<Taken<'a>>> {
        let mut out: Option<Taken<'a>> = None;
        for (field, v) in spec.iter().filter(|(name, _)| *name != "_id") {
            let (name, argument) = v.as_document()?.first()?;
            let own = out.get_or_insert(Taken { name, arguments: Vec::new() });
            if own.name != name {
                return None;
            }
            own.arguments.push((field, argument));
        }
        Some(out)
    }
    fn sorts(&self) -> bool {
        matches!(self.name, "$top" | "$bottom")
    }
    /// The orders by whose first record of each value of `path` all have theirs.
    fn orders(&self, path: &str, collation: &Collation) -> Option<Vec<SortSpec>> {
        let sort_by = |argument: &'a Value| argument.as_document()?.get_document("sortBy");
        let (first, others) = self.arguments.split_first()?;
        let own = sort_by(first.1)?;
        if !others.iter().all(|(_, argument)| sort_by(argument) == Some(own)) {
            return None;
        }
        let own = SortSpec::parse(own.to_doc_buf().doc())
            .ok()
            .filter(|s| !s.by_score() && s.natural().is_none())?;
        let within: Document = own
            .to_document()
            .iter()
            .filter(|(name, _)| *name != path)
            .map(|(name, v)| (name.to_string(), v.clone()))
            .collect();
        let within = if self.name == "$top" { within } else { reversed(&within) };
        let led_by = |direction: i32| {
            let mut order = Document::new();
            order.push(path, direction);
            order.0.extend(within.0.clone());
            sort_of(&order, collation)
        };
        [1, -1].into_iter().map(led_by).collect()
    }
}

/// A sort that begins with `path`.
fn behind(path: &str, sort: &SortSpec) -> Option<Document> {
    let leads = sort.components().first().is_some_and(|(first, _)| first == path);
    (leads && !sort.by_score()).then(|| sort.to_document())
}

fn reversed(sort: &Document) -> Document {
    let other = |v: &Value| Value::Int32(if v.as_f64().is_some_and(|n| n < 0.0) { 1 } else { -1 });
    sort.iter().map(|(path, v)| (path.to_string(), other(v))).collect()
}

fn sort_of(order: &Document, collation: &Collation) -> Option<SortSpec> {
    Some(SortSpec::parse(order.to_doc_buf().doc()).ok()?.with_collation(collation))
}
