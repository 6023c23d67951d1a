//! What the profiler is told of an operation beside the numbers that every operation keeps. Nothing of it is made while no database
//! is profiled.

use super::choice::Choice;
use super::query::Wanted;
use super::shown::{Whole, with_counters};
use crate::{Node, Operation};
use document::{Document, doc, number};
use parking_lot::Mutex;
use query::explain::{Extras, winning_plan, with_sharding_filter};
use std::sync::atomic::Ordering::Relaxed;

/// The notes of one operation.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    keys_inserted: u64,
    keys_deleted: u64,
    sorts: bool,
    tried: bool,
    stages: Option<Document>,
    opened_by: Option<Document>,
}

impl Notes {
    /// Adds index keys that were written and removed.
    pub fn keys(&self, inserted: usize, deleted: usize) {
        let mut noted = self.0.lock();
        noted.keys_inserted += inserted as u64;
        noted.keys_deleted += deleted as u64;
    }
    /// The command that opened the cursor which the operation goes on with.
    pub fn opened_by(&self, command: Document) {
        self.0.lock().opened_by = Some(command);
    }
    pub fn originating_command(&self) -> Option<Document> {
        self.0.lock().opened_by.clone()
    }
    /// `hasSortStage` and `fromMultiPlanner` where they hold, and the numbers of keys where there are some.
    pub fn shown(&self) -> Document {
        let noted = self.0.lock();
        let mut out = Document::new();
        for (name, holds) in [("hasSortStage", noted.sorts), ("fromMultiPlanner", noted.tried)] {
            if holds {
                out.push(name, true);
            }
        }
        for (name, keys) in [("keysInserted", noted.keys_inserted), ("keysDeleted", noted.keys_deleted)] {
            if keys > 0 {
                out.push(name, number::int_or_long(keys as i64));
            }
        }
        out
    }
    /// The stages of the first plan, with what they have done so far.
    pub fn stages(&self) -> Option<Document> {
        self.0.lock().stages.clone()
    }
}

/// A plan that runs, as the profiler shows it.
pub struct Profiled {
    stages: Document,
    summary: String,
    sorts: bool,
    tried: bool,
}

impl Profiled {
    /// `summary`: the plan in a few words.
    pub fn of(
        node: &Node,
        choice: &Choice,
        wanted: &Wanted<'_>,
        clustered: bool,
        summary: impl FnOnce() -> String,
    ) -> Option<Box<Profiled>> {
        if !node.profiling.load(Relaxed) {
            return None;
        }
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let narrowed = wanted.narrowing();
        let extras = Extras {
            projection: wanted.shape.projection.as_ref(),
            needed: wanted.needed.as_deref().filter(|fields| !fields.is_empty()),
            narrowed: narrowed.as_ref(),
            skip: Some(wanted.shape.skip).filter(|n| *n > 0).map(whole),
            limit: wanted.shape.limit.map(whole),
            return_key: wanted.shape.return_key,
            clustered,
        };
        let plan = winning_plan(&choice.plan, &extras);
        Some(Box::new(Profiled {
            stages: if wanted.owner.is_some() { with_sharding_filter(plan) } else { plan },
            summary: summary(),
            sorts: choice.plan.needs_sort(),
            tried: choice.trials.len() > 1,
        }))
    }

    /// Notes with the operation what the plan has done so far, for whichever operation.
    pub fn note(&self, op: &Operation, whole: &Whole) {
        op.note_plan(self.summary.clone());
        let stages = with_counters(self.stages.clone(), whole);
        let mut noted = op.profiler_notes().0.lock();
        noted.sorts |= self.sorts;
        noted.tried |= self.tried;
        noted.stages = Some(stages);
    }
}

/// The one access of a read of one document by `_id`.
pub fn note_point(op: &Operation, found: bool) {
    let n = i32::from(found);
    let stage = doc! { "stage": "IDHACK", "nReturned": n, "keysExamined": n, "docsExamined": n };
    op.profiler_notes().0.lock().stages = Some(stage);
}
