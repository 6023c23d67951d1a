//! Following another member: its log entry by entry, its commit point, and reports of how far this member has come.
//!
//! ```text
//! follow   choose a source -> find on local.oplog.rs from the newest own entry -> first batch judged
//!            continues -> apply, getMore, ...           until the source is no good, or this member leads
//!            diverged  -> rollback
//!            too stale -> copy everything, if another source has no more either
//!            nothing here yet -> copy everything
//! report   whenever the log has become durable further: replSetUpdatePosition to the source, which hands it on
//! ```
//! Invariant: a batch is applied under `applying`, after a look that this member does not lead and that its log still
//! ends where the batch begins. (Between two batches it may have led, and had entries of its own taken back or not.)

use super::apply::Fetched;
use super::driver::{optime_document, read_optime};
use super::{MemberState, Replies, known};
use crate::{Node, Operation};
use document::{Doc, DocBuf, Document, Result, Timestamp, bail, doc, err};
use futures::FutureExt;
use protocol::replication::OpTime;
use protocol::replication::member::Member;
use protocol::replication::source::{First, Serving, choose, choose_to_copy, judge, should_change};
use query::matcher::Matcher;
use runtime::Instant;
use runtime::simulation::{self, Check};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

const OPLOG: &str = "oplog.rs";
/// How long to wait where there is nobody to fetch from.
const IDLE: Duration = Duration::from_millis(50);
/// The most and the least that a source has to begin its answer in.
const CALL_LIMIT: Duration = Duration::from_secs(30);
const CALL_LIMIT_MIN: Duration = Duration::from_secs(5);
/// How much longer than it was told to wait a source may take: one that is cut off says nothing, and another is chosen.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// How often a member that waits for its source looks whether another leads.
const DEPOSED_LOOK: Duration = Duration::from_millis(100);
/// How long a source that failed is not asked again, in milliseconds.
const DENY_FAILED_MS: u64 = 500;
const DENY_STALE_MS: u64 = 60_000;
/// How long a source is told to wait for entries while `setSmallOplogGetMoreMaxTimeMS` is set.
const SMALL_WAIT_MS: i64 = 50;
/// How long the status of the set tells what the choice of a source came to, in milliseconds.
const OUTCOME_TOLD_MS: u64 = 120_000;
/// How long nothing may come before a reader that waits for a time has a note written.
const NOTE_AFTER: Duration = Duration::from_millis(50);
/// How often the pause doubles while notes are refused.
const NOTE_DOUBLINGS_MAX: u32 = 4;
/// Entries applied before others get a turn.
const SLICE: usize = 256;

/// Follows other members as long as the node lives.
pub(super) async fn follow(node: Weak<Node>) {
    loop {
        let Some(strong) = node.upgrade() else { return };
        let pause = match AssertUnwindSafe(step(&strong)).catch_unwind().await {
            Ok(Ok(true)) => Duration::ZERO,
            Ok(Ok(false)) => IDLE,
            Ok(Err(error)) => {
                strong.replication.note("Fetching failed", doc! { "error": error.message });
                IDLE * 4
            }
            // Nobody knows how much of an entry is here, and a member that follows no more would serve what grows old.
            Err(_) => {
                return strong
                    .replication
                    .give_up(err!(INTERNAL_ERROR, "a panic while following another member"));
            }
        };
        strong.unset_source();
        drop(strong);
        tokio::time::sleep(pause).await;
    }
}

/// One source, or one copy; false when there is nothing to do now.
async fn step(node: &Arc<Node>) -> Result<bool> {
    let standing = node.replication.standing();
    let fetches = standing.own().is_some_and(|m| m.bears_data())
        && matches!(standing.state, MemberState::Secondary | MemberState::Recovering | MemberState::Startup2);
    if !fetches {
        return Ok(false);
    }
    if standing.state == MemberState::Startup2 {
        return node.copy_from_anybody().await;
    }
    if node.failpoint("stopReplProducer") {
        return Ok(false);
    }
    let metrics = &node.replication.metrics;
    let Some(host) = node.choose_source() else {
        metrics.sources_missing.add(1);
        node.tell_choice("Could not find member to sync from");
        let slower = node.failpoints.should_with("forceBgSyncSyncSourceRetryWaitMS", |_| true);
        if let Some(ms) =
            slower.and_then(|data| data.get_i64("sleepMS")).and_then(|ms| u64::try_from(ms).ok())
        {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        return Ok(false);
    };
    metrics.chose(&host);
    node.tell_choice(&format!("syncing from: {host}"));
    match node.fetch_from(&host).await {
        Ok(End::Changed) => Ok(true),
        Ok(End::Held) => Ok(false),
        Ok(End::Diverged) => node.roll_back(&host).await.map(|()| true),
        Ok(End::TooStale) => {
            node.deny(&host, DENY_STALE_MS);
            if node.choose_ahead_of(node.last_known()).is_none() {
                // What is known of the others may be from before they had more than this member.
                node.await_positions().await;
            }
            match node.choose_source() {
                Some(_) => Ok(true),
                None => node.start_copy("too stale to catch up").map(|()| true),
            }
        }
        Ok(End::Misfit(reason)) => {
            node.replication
                .note("An entry cannot be applied; copying everything anew", doc! { "error": reason });
            node.start_copy("an entry did not fit").map(|()| true)
        }
        // It knows the term now.
        Err(error) if error.code == document::codes::STALE_TERM => Ok(true),
        Err(error) => {
            node.deny(&host, DENY_FAILED_MS);
            Err(error)
        }
    }
}

pub(super) enum End {
    Changed,
    /// A test wants no entries from here now.
    Held,
    Diverged,
    TooStale,
    Misfit(String),
}

/// What became of a batch.
pub(super) enum Taken {
    All,
    /// This member leads, or has led or followed another meanwhile: its log does not end where the batch begins.
    Overtaken,
    /// An entry does not fit what is here, and why.
    Misfit(String),
}

impl Node {
    pub(super) fn failpoint(&self, name: &str) -> bool {
        self.failpoints.should(name)
    }

    /// The host to fetch from.
    fn choose_source(&self) -> Option<String> {
        let forced = self.replication.source.lock().forced.take();
        let forced = self.source_of_a_test().or(forced);
        let asked = forced
            .filter(|host| self.replication.look(|m| m.index_of(host).is_some_and(|i| Some(i) != m.me())));
        asked.or_else(|| self.choose_ahead_of(self.last_known()))
    }
    /// The member to fetch from that has more than `last`, and was not denied.
    fn choose_ahead_of(&self, last: OpTime) -> Option<String> {
        let lag_max = self.source_lag_max();
        self.choose_by(|m, denied| choose(m, last, denied, lag_max))
    }
    /// The member to copy everything from.
    pub(super) fn choose_to_copy(&self) -> Option<String> {
        let (lag_max, preference) = (self.source_lag_max(), self.replication.settings().copy_from);
        self.choose_by(|m, denied| choose_to_copy(m, denied, lag_max, preference))
    }
    /// How many seconds behind others a source may be.
    fn source_lag_max(&self) -> u64 {
        match self.failpoint("disableMaxSyncSourceLagSecs") {
            true => u64::MAX,
            false => self.replication.settings().source_lag_secs,
        }
    }
    fn choose_by(&self, choice: impl Fn(&Member, &[usize]) -> Option<usize>) -> Option<String> {
        let now = self.replication.now();
        let denied: Vec<String> = {
            let mut source = self.replication.source.lock();
            source.denied.retain(|(_, until)| *until > now);
            source.denied.iter().map(|(host, _)| host.clone()).collect()
        };
        self.replication.look(|m| {
            let denied: Vec<usize> = denied.iter().filter_map(|host| m.index_of(host)).collect();
            Some(m.config()?.members()[choice(m, &denied)?].host.clone())
        })
    }
    pub(super) fn deny(&self, host: &str, millis: u64) {
        let until = self.replication.now() + millis;
        self.replication.source.lock().denied.push((host.to_string(), until));
    }
    fn tell_choice(&self, outcome: &str) {
        let until = self.replication.now() + OUTCOME_TOLD_MS;
        self.replication.source.lock().outcome = Some((outcome.to_string(), until));
    }
    /// What the last choice of a source came to, for a while: `infoMessage` of this member's own line.
    pub(super) fn outcome_of_choice(&self) -> String {
        let now = self.replication.now();
        let source = self.replication.source.lock();
        source
            .outcome
            .as_ref()
            .filter(|(_, until)| *until > now)
            .map_or(String::new(), |(text, _)| text.clone())
    }
    pub(super) fn set_source(&self, host: &str) {
        self.replication.source.lock().host = host.to_string();
    }
    pub(super) fn unset_source(&self) {
        self.set_source("");
    }
    /// Whom this member fetches from: its host, and where that stands in the configuration.
    pub fn sync_source(&self) -> (String, Option<usize>) {
        let host = self.replication.source.lock().host.clone();
        let index = self.replication.look(|m| m.index_of(&host));
        (host, index)
    }
    /// `replSetSyncFrom`: the next source; returns the present one.
    pub fn sync_from(&self, host: &str) -> String {
        let mut source = self.replication.source.lock();
        source.forced = Some(host.to_string());
        source.host.clone()
    }
    /// The member that `forceSyncSourceCandidate` names, as `hostAndPort`, while it is set.
    fn source_of_a_test(&self) -> Option<String> {
        let data = self.failpoints.should_with("forceSyncSourceCandidate", |_| true)?;
        data.get_str("hostAndPort").map(str::to_string)
    }
    fn is_source_forced(&self) -> bool {
        if self.source_of_a_test().is_some_and(|host| host != self.replication.source.lock().host) {
            return true;
        }
        self.replication.source.lock().forced.is_some()
    }

    pub(super) async fn ask(
        &self,
        host: &str,
        db: &str,
        command: Document,
        limit: Duration,
    ) -> Result<DocBuf> {
        self.replication.peers()?.call(host, db, command.to_doc_buf(), limit).await
    }

    /// Runs a command on the primary.
    ///
    /// # Errors
    /// NotWritablePrimary (10107) where none is known; the primary's own.
    pub async fn run_on_primary(&self, db: &str, command: Document, limit: Duration) -> Result<DocBuf> {
        let standing = self.replication.standing();
        let primary = standing.primary.filter(|i| Some(*i) != standing.me).and_then(|i| standing.host(i));
        let primary = primary.ok_or_else(|| err!(NOT_WRITABLE_PRIMARY, "there is no primary"))?;
        self.ask(&primary, db, command, limit).await
    }

    /// How long a source that may be cut off is waited for: longer than an election takes.
    pub(super) fn patience(&self) -> Duration {
        let election_ms = self.replication.look(|m| m.config().map_or(10_000, |c| c.election_timeout_ms()));
        Duration::from_millis(election_ms.saturating_mul(3)).clamp(CALL_LIMIT_MIN, CALL_LIMIT)
    }

    /// The first entry in a direction: 1 for the oldest, -1 for the newest.
    pub(super) async fn end_of_log(&self, host: &str, direction: i32) -> Result<Fetched> {
        let command = doc! { "find": OPLOG, "sort": { "$natural": direction }, "limit": 1, "singleBatch": true,
        "$readPreference": { "mode": "secondaryPreferred" } };
        let reply = self.ask(host, "local", command, self.patience()).await?;
        let (_, entries) = read_batch(reply.doc())?;
        entries.into_iter().next().ok_or_else(|| err!(OPLOG_START_MISSING, "{host} has an empty oplog"))
    }

    /// The entries from the time `from` to that of `last`, which comes last; `None` if they take more than `bytes_max`.
    ///
    /// # Errors
    /// InvalidSyncSource (119) where the source does not have `last` any more; its own.
    pub(super) async fn entries_up_to(
        &self,
        host: &str,
        from: Timestamp,
        last: OpTime,
        bytes_max: usize,
    ) -> Result<Option<Vec<Fetched>>> {
        let until = Timestamp::from_u64(last.ts);
        let find = doc! {
            "find": OPLOG, "filter": { "ts": { "$gte": from, "$lte": until } }, "$oplogQueryData": 1,
            "$readPreference": { "mode": "secondaryPreferred" },
        };
        let mut reply = self.ask(host, "local", find, self.patience()).await?;
        let (mut all, mut bytes) = (Vec::new(), 0);
        loop {
            let (id, entries) = read_batch(reply.doc())?;
            bytes += entries.iter().map(|e| e.payload.bytes().len()).sum::<usize>();
            all.extend(entries);
            if bytes > bytes_max {
                self.kill_cursor(host, id).await;
                return Ok(None);
            }
            if id == 0 {
                break;
            }
            let more = doc! {
                "getMore": document::Value::Int64(id), "collection": OPLOG, "$oplogQueryData": 1,
            };
            reply = self.ask(host, "local", more, self.patience()).await?;
        }
        match all.last().is_some_and(|entry| known(entry.optime) == last) {
            true => Ok(Some(all)),
            false => bail!(INVALID_SYNC_SOURCE, "{host} has rolled back what is copied from it"),
        }
    }

    pub(super) async fn fetch_from(self: &Arc<Self>, host: &str) -> Result<End> {
        self.set_source(host);
        self.failpoints.pause_while_set("hangBeforeStartingOplogFetcher").await;
        let since = self.replication.now();
        let last = self.last_known();
        let oldest = known(self.end_of_log(host, 1).await?.optime);
        let election_ms = self.replication.look(|m| m.config().map_or(10_000, |c| c.election_timeout_ms()));
        let usual_ms = (election_ms / 2).clamp(10, 5_000) as i64;
        let find = doc! {
            "find": OPLOG, "filter": { "ts": { "$gte": Timestamp::from_u64(last.ts) } }, "tailable": true,
            "awaitData": true, "maxTimeMS": self.replication.settings().first_find_ms, "$oplogQueryData": 1,
            "term": self.replication.look(|m| m.term()),
            "$readPreference": { "mode": "secondaryPreferred" },
        };
        self.replication.metrics.readers.add(1);
        let mut reply = self.ask(host, "local", find, self.patience()).await?;
        let (mut id, mut entries) = read_batch(reply.doc())?;
        match judge(last, entries.first().map(|e| known(e.optime)), oldest) {
            First::Continues => drop(entries.remove(0)),
            First::TooStale => return Ok(End::TooStale),
            First::Diverged if simulation::omits(Check::Rollback) => {
                entries.retain(|e| known(e.optime).ts > last.ts);
            }
            First::Diverged => {
                let ahead = entries.last().is_some_and(|e| known(e.optime) > last);
                // A source behind this member's history is none to roll back against.
                let newest = self.end_of_log(host, -1).await?;
                return match ahead || known(newest.optime) > last {
                    true => Ok(End::Diverged),
                    false => {
                        self.deny(host, DENY_FAILED_MS);
                        Ok(End::Changed)
                    }
                };
            }
        }
        let mut shared = last;
        let mut stream = None;
        loop {
            self.failpoints.pause_while_set("hangBeforeProcessingSuccessfulBatch").await;
            if self.is_held(reply.doc()) {
                self.kill_cursor(host, id).await;
                return Ok(End::Held);
            }
            let taken = self.take_batch(shared, &entries).await?;
            match &taken {
                Taken::All => shared = entries.last().map_or(shared, |e| known(e.optime)),
                Taken::Overtaken => {}
                Taken::Misfit(reason) => return Ok(End::Misfit(reason.clone())),
            }
            self.take_metadata(reply.doc(), shared).await?;
            let (serving, lag_max) = (serving(since, reply.doc()), self.source_lag_max());
            let ends = matches!(taken, Taken::Overtaken)
                || !self.follows()
                || self.is_source_forced()
                // What was sent already goes with a stream, and the cursor stands behind that: another one begins where the log ends.
                || (stream.is_some() && !self.replication.settings().streams)
                || self.replication.look(|m| should_change(m, host, shared, serving, lag_max));
            if ends || id == 0 {
                self.kill_cursor(host, id).await;
                return Ok(End::Changed);
            }
            let wait_ms =
                if self.failpoint("setSmallOplogGetMoreMaxTimeMS") { SMALL_WAIT_MS } else { usual_ms };
            let limit = Duration::from_millis(wait_ms as u64) + SILENT_MAX;
            let began = Instant::now();
            let asked = self.next_batch(host, id, wait_ms, &mut stream, limit);
            reply = tokio::select! {
                reply = asked => reply?,
                () = self.is_deposed(host) => {
                    self.deny(host, DENY_FAILED_MS);
                    return Ok(End::Changed);
                }
            };
            (id, entries) = read_batch(reply.doc())?;
            let metrics = &self.replication.metrics;
            metrics.get_mores.done(began);
            metrics.empty_batches.add(usize::from(entries.is_empty()));
        }
    }

    /// The next batch of a cursor on a member's oplog: one that it sends by itself in `stream`, unless it is asked for each.
    async fn next_batch(
        &self,
        host: &str,
        id: i64,
        wait_ms: i64,
        stream: &mut Option<Box<dyn Replies>>,
        limit: Duration,
    ) -> Result<DocBuf> {
        if let Some(open) = stream
            && let Some(reply) = open.next(limit).await
        {
            return reply;
        }
        // It has ended by itself: the cursor stands behind what was read.
        *stream = None;
        let (commit, term) = self.replication.look(|m| (m.committed(), m.term()));
        let more = doc! {
            "getMore": document::Value::Int64(id), "collection": OPLOG, "maxTimeMS": wait_ms, "term": term,
            "lastKnownCommittedOpTime": optime_document(commit), "$oplogQueryData": 1,
        };
        if !self.replication.settings().streams {
            return self.ask(host, "local", more, limit).await;
        }
        let opened = self.replication.peers()?.stream(host, "local", more.to_doc_buf(), limit).await?;
        let answered = stream.insert(opened).next(limit).await;
        answered
            .unwrap_or_else(|| Err(err!(HOST_UNREACHABLE, "{host} has ended a stream that had not begun")))
    }

    /// The fail points that make a member pass over what it has fetched: `stopReplProducer`, and `stopReplProducerOnDocument` for a
    /// batch with an entry that its `document` matches.
    fn is_held(&self, reply: Doc<'_>) -> bool {
        let matches = |data: &Document| {
            let filter = data.get_document("document").cloned().unwrap_or_default().to_doc_buf();
            let matcher = Matcher::parse(filter.doc(), &self.parse_context(Document::new()));
            let batch = reply.get_document("cursor").and_then(batch_of);
            let mut entries = batch.into_iter().flat_map(Doc::iter).filter_map(|e| e.value().as_document());
            matcher.is_ok_and(|m| entries.any(|entry| m.matches(entry).unwrap_or(false)))
        };
        self.failpoint("stopReplProducer")
            || self.failpoints.should_with("stopReplProducerOnDocument", matches).is_some()
    }

    fn follows(&self) -> bool {
        self.replication.look(|m| {
            m.is_catching_up()
                || (!m.is_leader() && matches!(m.state(), MemberState::Secondary | MemberState::Recovering))
        })
    }

    /// Returns when a member that led before another does is still believed to lead: it may be cut off, and say nothing for long.
    async fn is_deposed(&self, source: &str) {
        let deposed = |m: &protocol::replication::member::Member| {
            let Some(source) = m.index_of(source) else { return false };
            let leads = m.peer(source).is_some_and(|p| p.state == MemberState::Primary);
            leads && m.primary().is_some_and(|i| i != source && Some(i) != m.me())
        };
        while !self.replication.look(deposed) {
            tokio::time::sleep(DEPOSED_LOOK).await;
        }
    }

    async fn kill_cursor(&self, host: &str, id: i64) {
        if id != 0 {
            let command = doc! { "killCursors": OPLOG, "cursors": vec![document::Value::Int64(id)] };
            // It ends by itself too, after a while.
            drop(self.ask(host, "local", command, Duration::from_secs(1)).await);
        }
    }

    /// Applies a batch that follows the entry `after` in the source's log.
    pub(super) async fn take_batch(self: &Arc<Self>, after: OpTime, entries: &[Fetched]) -> Result<Taken> {
        let taken = self.take_slices(after, entries).await;
        self.replication.metrics.set_waiting(0, 0);
        taken
    }

    async fn take_slices(self: &Arc<Self>, after: OpTime, entries: &[Fetched]) -> Result<Taken> {
        let metrics = &self.replication.metrics;
        let mut last = after;
        let bytes = |entries: &[Fetched]| entries.iter().map(|e| e.payload.bytes().len()).sum::<usize>();
        let (mut waiting, mut waiting_bytes) = (entries.len(), bytes(entries));
        metrics.fetched.add(waiting);
        metrics.fetched_bytes.add(waiting_bytes);
        let settings = self.replication.settings();
        let mut rest = entries;
        while let Some(slice) = slices(rest, settings.batch_entries, settings.batch_bytes).next() {
            metrics.set_waiting(waiting, waiting_bytes);
            self.failpoints.pause_while_set("rsSyncApplyStop").await;
            let slice = self.wait_for_delay(slice).await;
            rest = &rest[slice.len()..];
            (waiting, waiting_bytes) = (waiting - slice.len(), waiting_bytes - bytes(slice));
            let _applying = self.replication.applying.lock().await;
            if !self.follows() || self.last_known() != last {
                return Ok(Taken::Overtaken);
            }
            self.yield_transactions();
            for entry in slice {
                let next = known(entry.optime);
                if next.ts <= last.ts || next.term < last.term {
                    bail!(OPLOG_OUT_OF_ORDER, "Out of order entries in oplog: {next:?} after {last:?}");
                }
                last = next;
            }
            self.log.admit(0).await.map_err(crate::log_failed)?;
            let began = Instant::now();
            if let Err(error) = self.apply_entries(slice) {
                return Ok(Taken::Misfit(error.message));
            }
            crate::db_check::follow::look_into(self).await;
            metrics.batches.done(began);
            metrics.applied.add(slice.len());
            let actions = self.positions();
            self.perform(actions).await?;
            self.replication.note_progress();
            tokio::task::yield_now().await;
        }
        Ok(Taken::All)
    }

    /// On a delayed member: waits until the first of the entries is old enough, or this member has to do something else, and returns
    /// those that are.
    async fn wait_for_delay<'a>(&self, entries: &'a [Fetched]) -> &'a [Fetched] {
        loop {
            let delay_ms = self.replication.look(|m| m.own().map_or(0, |m| m.delay_secs)) * 1000;
            if delay_ms == 0 || !self.follows() {
                return entries;
            }
            let now = self.now_ms();
            let ripe = entries.iter().take_while(|e| e.wall + delay_ms <= now).count();
            if ripe > 0 {
                return &entries[..ripe];
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What the source says of the set, whose log this member shares up to an entry.
    pub(super) async fn take_metadata(self: &Arc<Self>, reply: Doc<'_>, shared: OpTime) -> Result<()> {
        let Some(data) = reply.get_document("$oplogQueryData") else { return Ok(()) };
        let commit = data.get_document("lastOpCommitted").and_then(read_optime);
        let term = data.get_i64("term").unwrap_or(-1);
        let led = data.get_i64("primaryIndex").unwrap_or(-1) >= 0;
        let actions = self.replication.with(|m, now, offset| {
            let mut actions = m.see_term(term, now, offset);
            if let Some(commit) = commit {
                actions.extend(m.learn_commit_from_source(commit, shared));
            }
            if led {
                m.primary_is_alive(now, offset);
            }
            actions
        });
        self.perform(actions).await
    }

    /// `$oplogQueryData` of a reply.
    pub fn oplog_query_data(&self) -> Document {
        let standing = self.replication.standing();
        let index = |i: Option<usize>| i.map_or(-1, |i| i as i32);
        doc! {
            "lastOpCommitted": optime_document(known(self.committed())),
            "lastOpApplied": optime_document(self.last_known()), "rbid": self.replication.rollback_id(),
            "primaryIndex": index(standing.primary), "syncSourceIndex": index(self.sync_source().1),
            "term": standing.term,
        }
    }

    /// `replSetUpdatePosition`: `(member id, applied, durable, walls)` of each member that is reported.
    ///
    /// # Errors
    /// NodeNotFound (74) for an unknown member, a failed log.
    pub async fn take_positions(
        self: &Arc<Self>,
        reported: &[(i64, OpTime, OpTime, (i64, i64))],
    ) -> Result<()> {
        self.configured()?;
        let mut actions = self.positions();
        let mut unknown = None;
        for (id, applied, durable, walls) in reported {
            let counted = self.replication.with(|m, now, _| {
                let index = m.config()?.index_of_id(*id)?;
                Some(match Some(index) == m.me() {
                    true => Vec::new(),
                    false => m.report(index, *applied, *durable, *walls, now),
                })
            });
            match counted {
                Some(more) => actions.extend(more),
                None => unknown = Some(id),
            }
        }
        // What is known of the others counts all the same: a commit is told once.
        self.perform(actions).await?;
        self.replication.note_progress();
        match unknown {
            None => Ok(()),
            Some(id) => bail!(
                NODE_NOT_FOUND,
                "Received replSetUpdatePosition for node with memberId {id} which doesn't exist in our config"
            ),
        }
    }

    /// The time may have come from elsewhere, and this set have written nothing since: its primary writes a note then.
    async fn ask_for_note(&self, ts: Timestamp) -> bool {
        let note = doc! {
            "appendOplogNote": 1, "maxClusterTime": ts, "data": doc! { "msg": "a read waits for this time" },
            // The primary may not have heard of the time, and its note has to come after it.
            "$clusterTime": doc! { "clusterTime": ts },
        };
        match self.run_on_primary("admin", note, Duration::from_secs(2)).await {
            Ok(_) => true,
            Err(e) => e.code == document::codes::STALE_CLUSTER_TIME,
        }
    }

    /// Waits until this member has applied what happened at `ts`.
    ///
    /// # Errors
    /// Interrupts.
    pub async fn wait_applied(&self, op: &Operation, ts: Timestamp) -> Result<()> {
        if self.log.last_optime().ts >= ts.as_u64() {
            return Ok(());
        }
        let mut progress = self.replication.progress();
        let _counted = self.replication.metrics.awaiting_time.enter();
        let reached = async {
            let mut asked = false;
            while self.log.last_optime().ts < ts.as_u64() {
                // The sender lives as long as the node. A primary's own writes do not pass here.
                let moved = tokio::time::timeout(NOTE_AFTER, progress.changed()).await.is_ok();
                if !moved
                    && !asked
                    && self.log.last_optime().ts < ts.as_u64()
                    && let Ok(mut notes) = self.replication.notes.try_lock()
                    && notes.may_ask(Instant::now())
                {
                    asked = self.ask_for_note(ts).await;
                    notes.heard(asked, Instant::now());
                }
            }
        };
        op.interruptible(Box::pin(reached)).await
    }
}

/// When this member may have a note written for its readers: many may wait while there is no primary. Held while one is under
/// way.
#[derive(Default)]
pub(super) struct Notes {
    refused: u32,
    not_before: Option<Instant>,
}

impl Notes {
    fn may_ask(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|then| now >= then)
    }
    fn heard(&mut self, written: bool, now: Instant) {
        self.refused = if written { 0 } else { self.refused + 1 };
        self.not_before = (!written).then(|| now + NOTE_AFTER * (1 << self.refused.min(NOTE_DOUBLINGS_MAX)));
    }
}

/// Parts of a batch that others see as a whole: of at most so many entries, and of at most so many bytes where an entry alone has not more.
fn slices(entries: &[Fetched], entries_max: usize, bytes_max: usize) -> impl Iterator<Item = &[Fetched]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |e: &&Fetched| {
            bytes += e.payload.bytes().len();
            bytes <= bytes_max
        };
        let fitting = rest.iter().take(SLICE.min(entries_max)).take_while(fits).count();
        let (slice, after) = rest.split_at(fitting.max(1).min(rest.len()));
        rest = after;
        (!slice.is_empty()).then_some(slice)
    })
}

/// The batch that a cursor's reply carries, as an array.
fn batch_of(cursor: Doc<'_>) -> Option<Doc<'_>> {
    cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()
}

/// What a source first asked at `since` says of itself with a batch.
fn serving(since: u64, reply: Doc<'_>) -> Serving {
    let data = reply.get_document("$oplogQueryData").unwrap_or(Doc::empty());
    let applied = data.get_document("lastOpApplied").and_then(read_optime).unwrap_or(OpTime::NONE);
    Serving { since, follows: data.get_i64("syncSourceIndex").is_some_and(|index| index >= 0), applied }
}

/// The cursor's id and the entries of a batch.
fn read_batch(reply: Doc<'_>) -> Result<(i64, Vec<Fetched>)> {
    let cursor =
        reply.get_document("cursor").ok_or_else(|| err!(FAILED_TO_PARSE, "a reply without a cursor"))?;
    let batch = batch_of(cursor).ok_or_else(|| err!(FAILED_TO_PARSE, "a cursor without a batch"))?;
    let entries = batch.iter().filter_map(|e| e.value().as_document()).map(Fetched::read);
    Ok((cursor.get_i64("id").unwrap_or(0), entries.collect::<Result<_>>()?))
}

/// Makes the log durable as it grows, counts that, and reports it upstream.
pub(super) async fn report(node: Weak<Node>) {
    let mut sent = None;
    loop {
        let Some(strong) = node.upgrade() else { return };
        let mut progress = strong.replication.progress();
        let follows = strong.follows();
        let appended = strong.log.appended();
        if follows {
            // A secondary's entries count once they are durable: it asks for that.
            drop(strong.log.wait_durable(appended).await);
        }
        // Nobody waits for a log that has failed, on a primary either: this would go round without end.
        if strong.log.health().is_err() {
            return;
        }
        let actions = strong.positions();
        strong.perform_quietly(actions).await;
        let (host, _) = strong.sync_source();
        let positions = strong.known_positions();
        let keep_alive =
            strong.replication.look(|m| m.config().map_or(1000, |c| c.election_timeout_ms() / 3));
        if follows && !host.is_empty() && sent.as_ref() != Some(&(host.clone(), positions.clone())) {
            // Asked after the positions: none of them is of an entry that was appended in a later term. A source that
            // led in an earlier one hears that it leads no longer before it counts entries that may be rolled back.
            let term = strong.replication.look(|m| m.term());
            let command = doc! {
                "replSetUpdatePosition": 1, "optimes": positions.clone(), "$replData": { "term": term },
            };
            let done = strong.ask(&host, "admin", command, Duration::from_secs(5)).await;
            strong.replication.metrics.position_reports.add(1);
            sent = done.is_ok().then_some((host, positions));
            strong.replication.note_progress();
        }
        let waits = strong.log.wait_appended(appended);
        let limit = Duration::from_millis(keep_alive.clamp(10, 5000));
        let news = async {
            tokio::select! {
                _ = waits => {}
                _ = progress.changed() => {}
            }
        };
        if tokio::time::timeout(limit, news).await.is_err() {
            sent = None;
        }
        drop(strong);
    }
}

impl Node {
    /// What this member knows of itself and of those that follow it, for `replSetUpdatePosition`.
    fn known_positions(&self) -> Vec<document::Value> {
        let walls = (self.log.last_wall(), self.log.durable_wall());
        self.replication.look(|m| {
            let Some(config) = m.config() else { return Vec::new() };
            let line = |index: usize, applied: OpTime, durable: OpTime, walls: (i64, i64)| {
                let member = config.members().get(index)?;
                Some(document::Value::from(doc! {
                    "durableOpTime": optime_document(durable), "durableWallTime": document::Value::DateTime(walls.1),
                    "appliedOpTime": optime_document(applied), "appliedWallTime": document::Value::DateTime(walls.0),
                    "memberId": member.id as i32, "cfgver": config.version() as i32,
                }))
            };
            let own = m.me().and_then(|me| line(me, m.applied(), m.durable(), walls));
            let others = m.peers().filter(|(_, p)| p.up && !p.applied.is_none());
            own.into_iter()
                .chain(others.filter_map(|(i, p)| line(i, p.applied, p.durable, (p.applied_wall, p.durable_wall))))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_applied_together_is_bounded_in_entries_and_bytes() {
        let of = |bytes: usize| {
            let shown = doc! { "op": "n", "ns": "", "o": { "pad": "x".repeat(bytes) }, "ts": Timestamp::from_u64(1), "v": 2i64 };
            Fetched::read(shown.to_doc_buf().doc()).unwrap()
        };
        let entries = [of(10), of(10), of(1000), of(5000), of(10)];
        let cut = |entries_max, bytes_max| {
            slices(&entries, entries_max, bytes_max).map(<[Fetched]>::len).collect::<Vec<_>>()
        };
        assert_eq!(cut(5000, 100_000), [5]);
        assert_eq!(cut(2, 100_000), [2, 2, 1]);
        assert_eq!(cut(5000, 2000), [3, 1, 1], "one that is larger stands alone");
        assert!(slices(&entries[..0], 1, 1).next().is_none());
    }

    #[test]
    fn notes_become_rarer_while_they_are_refused() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        assert!(notes.may_ask(now));
        let mut pause = NOTE_AFTER;
        for _ in 0..NOTE_DOUBLINGS_MAX + 2 {
            notes.heard(false, now);
            pause = (pause * 2).min(NOTE_AFTER * (1 << NOTE_DOUBLINGS_MAX));
            assert!(!notes.may_ask(now + pause - Duration::from_millis(1)));
            assert!(notes.may_ask(now + pause));
        }
        notes.heard(true, now);
        assert!(notes.may_ask(now));
        notes.heard(false, now);
        assert!(notes.may_ask(now + NOTE_AFTER * 2));
    }
}
