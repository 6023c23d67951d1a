//! The query language over BSON bytes: match, project, sort, update, expressions, pipelines, and the planner.
//!
//! Everything here is a pure function of its arguments. A filter, a projection, a sort, an update is parsed once
//! into an owned, `Send + Sync` value and then applied to many documents.
//!
//! Invariant: this crate does no I/O, knows no collection and reads no clock; the time and the variables an operator may
//! see arrive in [`ParseContext`].

pub mod accumulator;
pub mod change_stream;
pub mod computed;
pub mod depth;
pub mod explain;
pub mod expression;
pub mod matcher;
pub mod names;
pub mod pipeline;
pub mod planner;
pub mod projection;
pub mod sort;
pub mod text;
pub mod update;

use document::{Document, Timestamp};

/// What the text of a query cannot know: the command's variables and the time at which it runs.
#[derive(Clone, Debug, Default)]
pub struct ParseContext {
    /// The command's `let`, already evaluated: names without `$$`.
    pub variables: Document,
    /// `$$NOW`, milliseconds since the epoch, UTC; also `$currentDate`.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME` and the timestamps of `$currentDate`.
    pub cluster_time: Timestamp,
    /// A number that differs from operation to operation; `$sampleRate` and `$rand` derive theirs from it.
    pub seed: u64,
}

impl ParseContext {
    /// A context without variables at the given time.
    pub fn at(now_ms: i64) -> ParseContext {
        ParseContext {
            now_ms,
            cluster_time: Timestamp::new((now_ms / 1000) as u32, 1),
            ..ParseContext::default()
        }
    }
}
