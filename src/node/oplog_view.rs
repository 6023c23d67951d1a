//! `local.oplog.rs`: the log, seen as a collection of its oplog entries.
//!
//! The documents are composed from the frames while they are read. Bounds that the filter puts on `ts` decide where
//! reading starts and where it ends; the newest entries first (`$natural: -1`) are read from the end.

use crate::exec::Output;
use crate::{Node, Operation, log_failed};
use document::{DocBuf, Result, ValueRef, meter};
use query::matcher::{Comparison, Matcher, Test};
use query::planner::Direction;
use query::projection::Projection;
use runtime::Instant;
use std::time::Duration;
use storage::entry::{compose, compose_whole};
use storage::log::{Class, LogReader, ReadFrom, ReverseReader};

enum Reader {
    Forward(LogReader),
    Backward(ReverseReader),
}

/// Entries of the log that match, in its order or backwards.
pub struct OplogRows {
    reader: Reader,
    filter: Matcher,
    /// Inclusive bounds on `ts`.
    first: u64,
    last: u64,
    /// Where the log ended when the query began: a find is not a tail.
    end: u64,
    skip: u64,
    left: u64,
    projection: Option<Projection>,
    /// A document that did not fit into the last batch.
    held: Option<DocBuf>,
    ended: bool,
    /// Another member reads: it takes over the images that are not shown to others.
    whole: bool,
}

impl OplogRows {
    /// # Errors
    /// A failed or unreadable log.
    pub fn open(
        node: &Node,
        filter: Matcher,
        direction: Option<Direction>,
        skip: u64,
        limit: Option<u64>,
        projection: Option<Projection>,
    ) -> Result<OplogRows> {
        let (first, last) = ts_bounds(&filter);
        let reader = match direction {
            Some(Direction::Backward) => Reader::Backward(node.log.reverse_reader(None).map_err(log_failed)?),
            _ => Reader::Forward(
                node.log
                    .reader(if first > 0 { ReadFrom::Ts(first) } else { ReadFrom::Start })
                    .map_err(log_failed)?,
            ),
        };
        Ok(OplogRows {
            reader,
            filter,
            first,
            last,
            end: node.log.appended(),
            skip,
            left: limit.unwrap_or(u64::MAX),
            projection,
            held: None,
            ended: false,
            whole: false,
        })
    }
    /// The same for another member, if `member` says so.
    pub fn whole(self, member: bool) -> OplogRows {
        OplogRows { whole: member, ..self }
    }
    /// Looks for more, up to where the log ends now: what a tail does.
    pub fn go_on(&mut self, end: u64) {
        (self.end, self.ended) = (end, false);
    }
    pub fn ended(&self) -> bool {
        self.ended && self.held.is_none()
    }
    /// Reads on until `out` is full or the query has ended.
    pub async fn fill(&mut self, op: &Operation, out: &mut dyn Output) -> Result<()> {
        loop {
            op.check_interrupt()?;
            if let Some(d) = self.held.take()
                && !out.put(d.doc())?
            {
                self.held = Some(d);
                return Ok(());
            }
            if self.ended || out.is_full() {
                return Ok(());
            }
            self.slice(out)?;
            tokio::task::yield_now().await;
        }
    }
    /// About a millisecond of reading.
    fn slice(&mut self, out: &mut dyn Output) -> Result<()> {
        let until = Instant::now() + Duration::from_millis(1);
        while !self.ended && self.held.is_none() && !out.is_full() && Instant::now() < until {
            if self.left == 0 {
                self.ended = true;
                break;
            }
            let (frame, backward) = match &mut self.reader {
                Reader::Forward(r) => (r.next_before(self.end), false),
                Reader::Backward(r) => (r.next(), true),
            };
            let Some(d) = (match frame.map_err(log_failed)? {
                None => {
                    self.ended = true;
                    break;
                }
                Some(frame) => {
                    let ts = frame.optime.ts;
                    // Timestamps ascend with positions, so one past the bound ends the search.
                    let past = if backward { ts < self.first } else { ts > self.last };
                    if past && frame.class == Class::Oplog {
                        self.ended = true;
                        break;
                    }
                    (frame.class == Class::Oplog)
                        .then(|| if self.whole { compose_whole(&frame) } else { compose(&frame) })
                }
            }) else {
                continue;
            };
            if !self.filter.matches(d.doc())? {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            let d = match &self.projection {
                None => d,
                Some(p) => {
                    let mut bytes = Vec::new();
                    p.apply(d.doc(), &mut bytes)?;
                    DocBuf::from_validated(bytes)
                }
            };
            if !out.put(d.doc())? {
                self.held = Some(d);
            }
        }
        Ok(())
    }
}

/// The inclusive range of `ts` that the filter allows.
fn ts_bounds(filter: &Matcher) -> (u64, u64) {
    let (mut first, mut last) = (0, u64::MAX);
    for test in filter.tests_of("ts") {
        let Test::Compare(comparison, operand) = test else { continue };
        let ValueRef::Timestamp(ts) = operand.value() else { continue };
        let ts = ts.as_u64();
        match comparison {
            Comparison::Eq => (first, last) = (first.max(ts), last.min(ts)),
            Comparison::Gt => first = first.max(ts.saturating_add(1)),
            Comparison::Gte => first = first.max(ts),
            Comparison::Lt => last = last.min(ts.saturating_sub(1)),
            Comparison::Lte => last = last.min(ts),
        }
    }
    (first, last)
}

/// Every entry, oldest first.
pub fn all(node: &Node) -> Result<Vec<DocBuf>> {
    let mut reader = node.log.reader(ReadFrom::Start).map_err(log_failed)?;
    let end = node.log.appended();
    let mut out = Vec::new();
    while let Some(frame) = reader.next_before(end).map_err(log_failed)? {
        meter::spend(16)?;
        if frame.class == Class::Oplog {
            out.push(compose(&frame));
        }
    }
    Ok(out)
}
