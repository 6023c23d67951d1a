//! `$_internalRank` and `$_internalFuse`: what `$rankFusion` does with the documents of its input pipelines.
//!
//! ```text
//! {a: 1, _id: x} ─ rank ─> {d: {a: 1, _id: x}, p: 0, r: 1} ─ fuse ─> {a: 1, _id: x}, by the sum of weight / (60 + r)
//! ```

use crate::pipeline::account::{Charge, Use};
use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use crate::sort::SortSpec;
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail, doc, number};
use std::collections::{HashMap, hash_map::Entry};

/// Dampens the difference between the first ranks.
const RANK_CONSTANT: f64 = 60.0;
const DESCRIPTION: &str = "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + rank))) across input pipelines from which this document is output, from:";

/// Numbers documents from 1; those with the sort key of the one before have its rank.
#[derive(Clone, Debug)]
struct Rank {
    pipeline: i32,
    order: Option<SortSpec>,
}

struct Ranking {
    plan: Rank,
    seen: i64,
    rank: i64,
    key: Option<Vec<u8>>,
}

impl Plan for Rank {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Ranking { plan: self.clone(), seen: 0, rank: 0, key: None }))
    }
}

impl Stage for Ranking {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        self.seen += 1;
        let key = self.plan.order.as_ref().map(|order| order.key(d.doc())).transpose()?;
        if key.is_none() || key != self.key {
            self.rank = self.seen;
        }
        self.key = key;
        out.push(DocWriter::build(|w| {
            w.document("d", d.doc());
            w.i32("p", self.plan.pipeline);
            w.i64("r", self.rank);
        }))?;
        Ok(Flow::Continue)
    }
}

pub fn rank(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(FAILED_TO_PARSE, "{name} takes an object") };
    let pipeline = d.get("pipeline").and_then(number::to_i64_exact).unwrap_or(0) as i32;
    let order = match d.get_document("sort") {
        Some(pattern) => {
            Some(SortSpec::parse(pattern.to_doc_buf().doc())?.with_collation(&ctx.query.collation))
        }
        None => None,
    };
    one(name, v, Rank { pipeline, order })
}

#[derive(Clone, Debug)]
struct Fuse {
    names: Vec<String>,
    weights: Vec<f64>,
    /// The fields for `{$meta: "score"}` and `{$meta: "scoreDetails"}`, where they are asked for.
    score_field: Option<String>,
    details_field: Option<String>,
}

/// A document and its rank in each pipeline that gave it.
struct Found {
    document: DocBuf,
    ranks: Vec<Option<i64>>,
}

struct Fusing {
    plan: Fuse,
    found: HashMap<Vec<u8>, Found>,
    bytes: usize,
    charge: Charge,
    giving: Option<std::vec::IntoIter<DocBuf>>,
}

impl Plan for Fuse {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Fusing {
            plan: self.clone(),
            found: HashMap::new(),
            bytes: 0,
            charge: run.charge(run.limits.group),
            giving: None,
        }))
    }
}

impl Fuse {
    /// In the pipelines' order, so that every division of the work gives the same sum.
    fn score(&self, ranks: &[Option<i64>]) -> f64 {
        let parts = ranks.iter().zip(&self.weights);
        parts.fold(0.0, |sum, (rank, weight)| {
            rank.map_or(sum, |r| sum + weight * (1.0 / (RANK_CONSTANT + r as f64)))
        })
    }
    fn details(&self, score: f64, ranks: &[Option<i64>]) -> Document {
        let of = |((name, weight), rank): ((&String, &f64), &Option<i64>)| match rank {
            Some(rank) => doc! {
                "inputPipelineName": name.as_str(), "rank": number::int_or_long(*rank), "weight": *weight,
                "details": (Value::Array(Vec::new())),
            },
            None => doc! { "inputPipelineName": name.as_str(), "rank": "NA" },
        };
        let details = self.names.iter().zip(&self.weights).zip(ranks).map(of).map(Value::Document).collect();
        doc! { "value": score, "description": DESCRIPTION, "details": (Value::Array(details)) }
    }
    fn document(&self, score: f64, found: &Found) -> DocBuf {
        if self.score_field.is_none() && self.details_field.is_none() {
            return found.document.clone();
        }
        DocWriter::build(|w| {
            w.fields_of(found.document.doc());
            if let Some(field) = &self.score_field {
                w.double(field, score);
            }
            if let Some(field) = &self.details_field {
                Value::Document(self.details(score, &found.ranks)).write(w, field);
            }
        })
    }
}

impl Fusing {
    /// The documents by score, the best first; equal ones by `_id`.
    fn ordered(&mut self) -> Vec<DocBuf> {
        let found = std::mem::take(&mut self.found);
        let mut scored: Vec<(f64, Vec<u8>, Found)> =
            found.into_iter().map(|(id, found)| (self.plan.score(&found.ranks), id, found)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        scored.iter().map(|(score, _, found)| self.plan.document(*score, found)).collect()
    }
}

impl Stage for Fusing {
    fn push(&mut self, d: DocBuf, _: &mut Batch) -> Result<Flow> {
        let ranked = d.doc();
        let document = ranked.get_document("d").unwrap_or(Doc::empty());
        let number = |name: &str| ranked.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
        let mut id = Vec::new();
        let value = document.get("_id").map_or(Value::Null, |v| v.to_value());
        Collation::SIMPLE.append_value_key(&mut id, &value, false);
        let inputs = self.plan.names.len();
        let found = match self.found.entry(id) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                self.bytes += document.bytes().len() + place.key().len() + 16 * inputs + 64;
                self.charge.set(self.bytes);
                if self.charge.is_over() {
                    bail!(EXCEEDED_MEMORY_LIMIT, "$rankFusion used too much memory and cannot spill to disk");
                }
                place.insert(Found { document: document.to_owned(), ranks: vec![None; inputs] })
            }
        };
        if let Some(rank) = found.ranks.get_mut(number("p") as usize) {
            rank.get_or_insert(number("r"));
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let mut giving = match self.giving.take() {
            Some(giving) => giving,
            None => self.ordered().into_iter(),
        };
        for d in giving.by_ref() {
            out.push(d)?;
            if out.is_full() {
                self.giving = Some(giving);
                return Ok(Flow::More);
            }
        }
        self.charge.set(0);
        Ok(Flow::Continue)
    }
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.charge.used)
    }
}

pub fn fuse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(FAILED_TO_PARSE, "{name} takes an object") };
    let list = |field: &str| match d.get(field) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let field = |meta: &str| d.get_str(meta).map(str::to_string);
    let plan = Fuse {
        names: list("names").iter().filter_map(|v| v.as_str().map(str::to_string)).collect(),
        weights: list("weights").iter().filter_map(number::as_f64).collect(),
        score_field: field("score"),
        details_field: field("scoreDetails"),
    };
    one(name, v, plan)
}
