//! `$sort`, with a limit folded in, and the sort keys that travel from shards to the router.
//!
//! A shard appends its documents' keys as the field `$sortKey`, a binary whose memcmp order is the sort order. The router
//! merges the shards' streams by it and strips it ([`take_sort_key`]).

use super::account::{Kind, Use};
use super::spill::{Merge, Sorter};
use super::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::check_internal, parse::one};
use crate::sort::SortSpec;
use document::{DocBuf, DocWriter, Document, Result, Value, ValueRef, bail, doc, number};

/// The field that carries a sort key between nodes.
pub const SORT_KEY: &str = "$sortKey";

#[derive(Clone, Debug)]
struct Sort {
    spec: SortSpec,
    limit: Option<i64>,
}

struct Running {
    spec: SortSpec,
    sorter: Sorter,
    sorted: Option<Merge>,
}

impl Plan for Sort {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        let limit = self.limit.and_then(|n| usize::try_from(n).ok());
        Ok(Box::new(Running {
            spec: self.spec.clone(),
            sorter: Sorter::new(run, Kind::Sort, run.limits.sort, limit),
            sorted: None,
        }))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(self.spec.components().iter().map(|(p, _)| p.clone()).collect())
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, _: &mut Batch) -> Result<Flow> {
        let key = self.spec.key(d.doc())?;
        self.sorter.push(key, d.into_bytes())?;
        if self.sorter.is_over() {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.sorter.limit()
            );
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let sorted = match &mut self.sorted {
            Some(sorted) => sorted,
            none => none.insert(self.sorter.finish()?),
        };
        for entry in sorted.by_ref() {
            out.push(DocBuf::from_validated(entry?.1))?;
            if out.is_full() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Continue)
    }
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.sorter.used())
    }
}

/// The member that carries a folded limit in a specification sent to a shard.
const FOLDED_LIMIT: &str = "$_internalLimit";

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(15973, "the $sort key specification must be an object") };
    let (pattern, limit) = pattern_and_limit(d);
    if pattern.is_empty() {
        bail!(15976, "$sort stage must have at least one sort key");
    }
    check_pattern(&pattern)?;
    if let Some(stages) = at_random(&pattern, limit) {
        let stages: Vec<Value> = stages.into_iter().map(Value::from).collect();
        return Ok(super::parse::each(&stages, ctx)?.stages);
    }
    let spec = SortSpec::parse(pattern.to_doc_buf().doc())?;
    let spec = spec.with_collation(&ctx.query.collation).with_text(ctx.query.text.as_ref())?;
    one(name, v, Sort { spec, limit })
}

/// The stages that stand for a sort by `{$meta: "randVal"}`: by a number drawn for each document.
fn at_random(pattern: &Document, limit: Option<i64>) -> Option<Vec<Document>> {
    const DRAWN: &str = "__internal_randVal";
    let is_random = |v: &Value| v.as_document().is_some_and(|m| m.get_str("$meta") == Some("randVal"));
    if !pattern.iter().any(|(_, v)| is_random(v)) {
        return None;
    }
    let mut by = Document::new();
    for (path, v) in pattern.iter() {
        match is_random(v) {
            true if by.contains_key(DRAWN) => {}
            true => by.push(DRAWN, -1),
            false => by.push(path, v.clone()),
        }
    }
    let by = limit.map_or(by.clone(), |n| fold_limit(&by, n));
    let drawn = Document(vec![(DRAWN.to_string(), doc! { "$rand": {} }.into())]);
    Some(vec![doc! { "$addFields": drawn }, doc! { "$sort": by }, doc! { "$unset": DRAWN }])
}

fn check_pattern(d: &Document) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for (path, v) in d.iter() {
        if !seen.insert(path) {
            bail!(7472500, "$sort key must not contain duplicate keys (field: '{path}')");
        }
        match v {
            Value::Document(m) if m.len() > 1 && m.contains_key("$meta") => {
                bail!(FAILED_TO_PARSE, "Cannot have additional keys in a $meta sort specification")
            }
            Value::Document(m) if m.first().is_some_and(|(k, _)| k == "$meta") => match m.get_str("$meta") {
                Some("textScore" | "randVal" | "searchScore" | "vectorSearchScore") => {}
                Some("geoNearDistance") => {
                    bail!(40218, "query requires geo near distance metadata, but it is not available")
                }
                Some("score") => bail!(40218, "query requires score metadata, but it is not available"),
                _ => bail!(31138, "Illegal $meta sort: {}", crate::expression::parse::show(v)),
            },
            Value::Document(_) => bail!(17312, "$meta is the only expression supported by $sort right now"),
            v => {
                crate::sort::direction(path, v.to_holder().get("").unwrap_or(ValueRef::Null))?;
                crate::expression::FieldPath::parse(path)?;
            }
        }
    }
    Ok(())
}

/// The pattern alone, and the limit folded into it.
pub(super) fn pattern_and_limit(d: &Document) -> (Document, Option<i64>) {
    let mut pattern = d.clone();
    let limit = pattern.remove(FOLDED_LIMIT).as_ref().and_then(number::to_i64_exact);
    (pattern, limit)
}

/// This pattern with a limit; the less of two.
pub(super) fn fold_limit(d: &Document, n: i64) -> Document {
    let (mut pattern, limit) = pattern_and_limit(d);
    pattern.push(FOLDED_LIMIT, limit.map_or(n, |l| l.min(n)));
    pattern
}

/// Stages as explain shows them: `{$sort: {sortKey, limit?}}`, without the `$limit` that is folded into it and without what only carries keys to
/// a router.
pub fn shown(stages: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(stages.len());
    let mut folded = None;
    for mut stage in stages {
        let limit = folded.take();
        let Value::Document(d) = &mut stage else { continue };
        if d.contains_key(ADD_SORT_KEY) || (limit.is_some() && d.get_i64("$limit") == limit) {
            continue;
        }
        if let Some(Value::Document(spec)) = d.get_mut("$sort") {
            let (pattern, limit) = pattern_and_limit(spec);
            *spec = document::doc! { "sortKey": pattern, "limit": limit };
            folded = limit;
        }
        out.push(stage);
    }
    out
}

/// The last stage of a shard's half whose documents are merged in order.
pub(super) const ADD_SORT_KEY: &str = "$_internalAddSortKey";

#[derive(Clone, Debug)]
struct AddSortKey(SortSpec);

impl Plan for AddSortKey {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}
impl Stage for AddSortKey {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        out.push(with_sort_key(&d, &self.0)?)?;
        Ok(Flow::Continue)
    }
}

/// `$_internalAddSortKey`, the last stage of a shard's half whose documents are merged in order.
pub fn add_sort_key_stage(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    check_internal(name, ctx)?;
    let Value::Document(d) = v else { bail!(15973, "the $sort key specification must be an object") };
    let spec = SortSpec::parse(d.to_doc_buf().doc())?.with_collation(&ctx.query.collation);
    one(name, v, AddSortKey(spec))
}

/// The document with its sort key appended.
pub fn with_sort_key(d: &DocBuf, spec: &SortSpec) -> Result<DocBuf> {
    Ok(attach_sort_key(d, &spec.key(d.doc())?))
}

/// The document with a given sort key appended.
pub fn attach_sort_key(d: &DocBuf, key: &[u8]) -> DocBuf {
    DocWriter::build(|w| {
        w.fields_of(d.doc());
        w.binary(SORT_KEY, 0, key);
    })
}

/// The sort key of a shard's document, and the document without it.
pub fn take_sort_key(d: &DocBuf) -> (Vec<u8>, DocBuf) {
    let key = match d.get(SORT_KEY) {
        Some(ValueRef::Binary(_, bytes)) => bytes.to_vec(),
        _ => Vec::new(),
    };
    let rest = DocWriter::build(|w| {
        for e in d.doc().iter().filter(|e| e.name_bytes() != SORT_KEY.as_bytes()) {
            w.element(&e);
        }
    });
    (key, rest)
}
