//! The query language over BSON bytes: match, project, sort, update, expressions, pipelines, and the planner.
//!
//! Everything here is a pure function of its arguments. A filter, a projection, a sort, an update is parsed once
//! into an owned, `Send + Sync` value and then applied to many documents.
//!
//! Invariant: this crate does no I/O, knows no collection and reads no clock; the time and the variables an operator may
//! see arrive in [`QueryContext`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod accumulator;
mod assignment;
pub mod change_stream;
pub mod command_let;
pub mod computed;
pub mod depth;
pub mod explain;
pub mod expression;
pub mod fields;
pub mod matcher;
mod merge_sort;
pub mod names;
pub mod pipeline;
pub mod planner;
pub mod projection;
pub mod script;
pub mod shape;
pub mod sort;
pub mod text;
pub mod timeseries;
pub mod update;

use document::fts::{TextIndex, TextQuery};
use document::{Collation, Document, Result, Timestamp};
use expression::Constants;
use std::sync::Arc;

/// What the text of a query cannot know: the command's variables and the time at which it runs.
#[derive(Clone, Debug, Default)]
pub struct ParseContext {
    /// The command's `let`, already evaluated: names without `$$`.
    pub variables: Document,
    /// `$$NOW`, milliseconds since the epoch, UTC; also `$currentDate`.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME` and the timestamps of `$currentDate`.
    pub cluster_time: Timestamp,
    /// The command knows neither `$$NOW` nor `$$CLUSTER_TIME`.
    pub timeless: bool,
    /// The node makes timestamps and keeps no cluster time: it is no member of a set.
    pub clockless: bool,
    /// A number that differs from operation to operation; `$sampleRate` and `$rand` derive theirs from it.
    pub seed: u64,
    /// Where the client's functions run.
    pub scripts: script::Scripts,
}

impl ParseContext {
    /// `$$CLUSTER_TIME`, where there is one.
    pub fn shown_cluster_time(&self) -> Option<Timestamp> {
        Some(self.cluster_time).filter(|t| !self.clockless && *t != Timestamp::default())
    }
}

/// What a parser must know beside the text: the command's variables and time, and how strings compare. Its variables and
/// time are read as its own.
#[derive(Clone, Debug, Default)]
pub struct QueryContext {
    outside: ParseContext,
    /// How strings compare.
    pub collation: Collation,
    /// The collection's text index, where the query has a `$text`.
    pub text_index: Option<Arc<TextIndex>>,
    /// The query's `$text`, for what asks for its score.
    pub text: Option<Arc<TextQuery>>,
    /// Whether expressions that no document has a part in must have a value.
    pub constants: Constants,
}

impl QueryContext {
    /// A context without variables at the given time.
    pub fn at(now_ms: i64) -> QueryContext {
        let cluster_time = Timestamp::new((now_ms / 1000) as u32, 1);
        ParseContext { now_ms, cluster_time, ..ParseContext::default() }.into()
    }
    /// One that knows no more than the collation.
    pub fn collated(collation: &Collation) -> QueryContext {
        QueryContext::default().with_collation(collation)
    }
    pub fn with_collation(mut self, collation: &Collation) -> QueryContext {
        self.collation = collation.clone();
        self
    }
    /// Parses a part of a command, whose constant expressions must have a value even if there is no document.
    ///
    /// # Errors
    /// Those of `parse` and of the expressions.
    pub fn checked<T>(&self, parse: impl FnOnce(&QueryContext) -> Result<T>) -> Result<T> {
        let context = QueryContext { constants: Constants::checked(), ..self.clone() };
        let parsed = parse(&context)?;
        context.constants.check()?;
        Ok(parsed)
    }
}

impl From<ParseContext> for QueryContext {
    fn from(outside: ParseContext) -> QueryContext {
        QueryContext { outside, ..QueryContext::default() }
    }
}

impl std::ops::Deref for QueryContext {
    type Target = ParseContext;
    fn deref(&self) -> &ParseContext {
        &self.outside
    }
}

impl std::ops::DerefMut for QueryContext {
    fn deref_mut(&mut self) -> &mut ParseContext {
        &mut self.outside
    }
}
