//! A stream as the rows of a cursor.

use super::event::{Event, Logged, Watch};
use super::feed::{Interest, Mark, Reach, Ticket, waited};
use super::unwind::{Entries, Unwound, unwind};
use super::{Delivery, Scope, images};
use crate::exec::Output;
use crate::operation::ReadLevel;
use crate::read::host::LocalHost;
use crate::replication::begins_set;
use crate::{Node, Operation, log_failed};
use document::{Document, Error, Result, Timestamp, bail, codes};
use query::change_stream::{Spec, Start, Token};
use query::pipeline::{Namespace, Pipeline, Run};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;
use storage::entry::{Entry, Op};
use storage::log::{Class, LogError, LogReader, ReadFrom};

/// The longest that reading goes on without letting other tasks run.
const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

pub struct ChangeStreamRows {
    reader: LogReader,
    /// Entries before this time are passed over.
    start: u64,
    /// The newest entry of the log that was read.
    scanned: u64,
    unwound: Option<Unwound>,
    delivery: Delivery,
    ns: String,
    /// A router merges this stream: it looks up, resumes and ends it.
    from_router: bool,
    /// A no-op was read: a router waits for the time to go on.
    news_for_router: bool,
    /// A document was looked up as it is here, committed or not.
    looked_up: bool,
}

enum Scanned {
    Event(Box<Event>),
    Yield,
    End,
}

impl ChangeStreamRows {
    /// Opens a stream on `ns` for a pipeline that begins with `$changeStream`.
    ///
    /// # Errors
    /// 40573 on a standalone, InvalidOptions (72) for another read concern than majority, ChangeStreamHistoryLost (286),
    /// and those of the options.
    pub fn open(
        node: &Node,
        op: &Operation,
        ns: &str,
        pipeline: &Pipeline,
        run: Run,
        from_router: bool,
    ) -> Result<ChangeStreamRows> {
        if !node.is_replica_set() {
            return Err(Error::new(40573, "The $changeStream stage is only supported on replica sets"));
        }
        if op.read_concern.level_given && op.read_concern.level != ReadLevel::Majority {
            bail!(
                INVALID_OPTIONS,
                "$changeStream cannot run with a readConcern other than 'majority', or in a multi-document transaction."
            );
        }
        let stage = pipeline.source_stage().and_then(|s| s.spec.as_document().cloned()).unwrap_or_default();
        let spec = Spec::parse(&stage)?;
        let (start, first) = beginning(node, &spec);
        check_history(node, start)?;
        // A start in the future is reached by passing over what comes before it.
        let from = start.min(node.log.last_optime().ts.saturating_add(1));
        let reader = node.log.reader(ReadFrom::Ts(from)).map_err(log_failed)?;
        let scope = Scope::of(&Namespace::parse(ns), &spec);
        let watch = Watch { scope, spec, images_since: i64::MIN };
        let mut delivery = Delivery::new(watch, pipeline, run, &first)?;
        if from_router {
            delivery.set_passes_on();
        }
        Ok(ChangeStreamRows {
            reader,
            start,
            scanned: 0,
            unwound: None,
            delivery,
            ns: ns.to_string(),
            from_router,
            news_for_router: false,
            looked_up: false,
        })
    }

    pub fn ended(&self) -> bool {
        self.delivery.ended()
    }
    /// `postBatchResumeToken`.
    pub fn token(&self) -> Document {
        self.delivery.token()
    }
    /// Whether even an empty batch is worth a reply.
    pub fn has_news(&self) -> bool {
        self.from_router && self.news_for_router
    }

    /// Puts into `out` what is committed now, and waits until that is true of the documents that were looked up.
    pub async fn fill(&mut self, node: &Arc<Node>, op: &Arc<Operation>, out: &mut dyn Output) -> Result<()> {
        self.take_committed(node, op, out).await?;
        match std::mem::take(&mut self.looked_up) {
            true => node.await_level_committed(op, ReadLevel::Majority).await,
            false => Ok(()),
        }
    }

    async fn take_committed(
        &mut self,
        node: &Arc<Node>,
        op: &Arc<Operation>,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.news_for_router = false;
        self.delivery.set_images_since(images::kept_since(node));
        let reach = Reach::now(node);
        let host = LocalHost::of_stream(node.clone(), op.clone(), &self.ns);
        let mut until = Instant::now() + SLICE_TIME_MAX;
        loop {
            while let Some(front) = self.delivery.front() {
                if !out.put(front.doc())? {
                    return Ok(());
                }
                self.delivery.pop();
            }
            if out.is_full() || self.delivery.is_closed() {
                return Ok(());
            }
            op.check_interrupt()?;
            match self.scan(node, reach, until)? {
                Scanned::Event(event) => self.deliver(node, *event, &host).await?,
                Scanned::Yield => {
                    tokio::task::yield_now().await;
                    until = Instant::now() + SLICE_TIME_MAX;
                }
                Scanned::End => {
                    let mark = Token::high_water_mark(Timestamp::from_u64(self.scanned));
                    self.delivery.promise(&mark.data());
                    return Ok(());
                }
            }
        }
    }

    async fn deliver(&mut self, node: &Node, mut event: Event, host: &LocalHost) -> Result<()> {
        if self.from_router {
            return self.delivery.pass_on(event);
        }
        if event.wants_current {
            let ns =
                event.doc.get("ns").and_then(|v| v.as_document()).map(|d| {
                    format!("{}.{}", d.get_str("db").unwrap_or(""), d.get_str("coll").unwrap_or(""))
                });
            let key = event.doc.get("documentKey").and_then(|v| v.as_document());
            let found = ns.zip(key).and_then(|(ns, key)| images::current(node, &ns, event.token.uuid, key));
            event.set_full_document(found.as_ref());
            self.looked_up = true;
        }
        self.delivery.take(event, host).await
    }

    /// The next event in the committed part of the log.
    fn scan(&mut self, node: &Node, reach: Reach, until: Instant) -> Result<Scanned> {
        loop {
            if let Some(unwound) = &mut self.unwound {
                while let Some(logged) = unwound.next() {
                    if let Some(event) = self.delivery.watch().event(&logged)? {
                        return Ok(Scanned::Event(Box::new(event)));
                    }
                }
                self.scanned = unwound.time().as_u64();
                self.unwound = None;
            }
            if Instant::now() > until {
                return Ok(Scanned::Yield);
            }
            let Some(frame) = reach.next(&mut self.reader).map_err(read_failed)? else {
                return Ok(Scanned::End);
            };
            let ts = frame.optime.ts;
            if frame.class != Class::Oplog || ts < self.start {
                continue;
            }
            let entry = Entry::of_frame(&frame)?;
            self.news_for_router |= entry.op == Op::Noop;
            match unwind(node, &frame, &entry)? {
                Entries::Several(unwound) => self.unwound = Some(unwound),
                Entries::None => self.scanned = ts,
                Entries::One => {
                    self.scanned = ts;
                    let time = Timestamp::from_u64(ts);
                    let logged = Logged { entry, time, wall: frame.wall, index: 0, transaction: None };
                    if let Some(event) = self.delivery.watch().event(&logged)? {
                        return Ok(Scanned::Event(Box::new(event)));
                    }
                }
            }
        }
    }

    /// Waits until something is committed that may concern the stream, or until the time is up. What does not concern it is passed
    /// over.
    ///
    /// # Errors
    /// Interrupts, and a log that takes nothing any more.
    pub async fn await_news(&mut self, node: &Node, op: &Operation, until: Instant) -> Result<()> {
        let interest = Interest { scope: self.delivery.watch().scope.clone(), notes: self.from_router };
        let own = Mark { position: self.reader.position(), ts: self.scanned };
        let ticket = node.stream_feed.join(interest, own);
        if !self.pass_over(node, &ticket)? {
            let news = node.stream_feed.wait(node, &ticket);
            if let Ok(outcome) = op.interruptible(Box::pin(tokio::time::timeout_at(until, news))).await? {
                waited(outcome)?;
            }
            if let Some(mark) = ticket.clear().filter(|mark| mark.position > self.reader.position()) {
                self.reader = node.log.reader(ReadFrom::Position(mark.position)).map_err(read_failed)?;
                self.scanned = self.scanned.max(mark.ts);
            }
        }
        Ok(())
    }

    /// Passes over what was read for others before the stream joined them, unless it concerns the stream: whether it does.
    fn pass_over(&mut self, node: &Node, ticket: &Ticket<'_>) -> Result<bool> {
        while let Some(frame) = self.reader.next_before(ticket.read_before).map_err(read_failed)? {
            if ticket.concerns(&frame) {
                let again = ReadFrom::Position(frame.position);
                self.reader = node.log.reader(again).map_err(read_failed)?;
                return Ok(true);
            }
            if frame.class == Class::Oplog {
                self.scanned = frame.optime.ts;
            }
        }
        Ok(false)
    }

    #[cfg(test)]
    pub(super) fn position(&self) -> storage::log::Position {
        self.reader.position()
    }
}

/// The time of the first entry to look at, and the token that stands for the stream's beginning.
fn beginning(node: &Node, spec: &Spec) -> (u64, Token) {
    match &spec.start {
        Start::Now => {
            let next = node.log.last_optime().ts.saturating_add(1);
            (next, Token::high_water_mark(Timestamp::from_u64(next)))
        }
        Start::At(time) => (time.as_u64(), Token::high_water_mark(*time)),
        Start::After { token, .. } => (token.time.as_u64(), token.clone()),
    }
}

/// The log must have what happened at `start`. One that begins with the set itself has all there ever was; others were cut, or
/// begin where a copy of another member was made.
fn check_history(node: &Node, start: u64) -> Result<()> {
    if start > node.log.last_optime().ts {
        return Ok(());
    }
    let mut reader = node.log.reader(ReadFrom::Start).map_err(log_failed)?;
    while let Some(frame) = reader.next().map_err(read_failed)? {
        if frame.class == Class::Oplog {
            let reaches = frame.optime.ts <= start || begins_set(&Entry::of_frame(&frame)?);
            return if reaches { Ok(()) } else { Err(lost()) };
        }
    }
    Ok(())
}

fn lost() -> Error {
    Error::new(
        codes::CHANGE_STREAM_HISTORY_LOST,
        "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
    )
}

fn read_failed(e: LogError) -> Error {
    match e {
        LogError::Truncated { .. } => lost(),
        e => log_failed(e),
    }
}
