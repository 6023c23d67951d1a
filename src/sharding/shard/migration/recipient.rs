//! The recipient's driver: fetches from the donor and applies.
//!
//! While a batch is applied the next one is on its way. Everything received is written with `fromMigrate` and is
//! invisible here until the config server says otherwise: placement does not own the range, and filters leave it out.
//!
//! Documents of a difference can collide on a unique index while only a part has been applied (two swapped values).
//! Those are put aside and written at the end of the difference, when everything else stands as on the donor.

use super::changelog::StepTimes;
use super::donor::DO_NOT_REFRESH_RECIPIENT;
use super::range::{KeyRange, SLICE_TIME_MAX};
use super::request::RecvStart;
use super::{RECIPIENTS, sessions};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::migration::{
    GetNextSessionMods, MigrateClone, RecvChunkAbort, RecvChunkCommit, RecvChunkRelease, RecvChunkStatus,
    TransferMods,
};
use crate::remote::Target;
use crate::routing::table::CollectionInfo;
use crate::shard::ShardRole;
use crate::shard::range_deleter::{self, TASKS};
use crate::shard::refresh::SKIP_REFRESH;
use crate::shard::statistics::add;
use document::{Doc, DocBuf, Document, Error, Result, Value, ValueRef, bail, codes, doc, err};
use node::operation::WriteConcern;
use node::{BatchWrite, Operation, Origin, WriteUnit};
use parking_lot::Mutex;
use protocol::migration::recipient::{Action, Event, Recipient, State};
use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::Duration;
use storage::{CollectionMeta, IndexSpec, RecordId};
use tokio::sync::watch;

/// A difference of at most this many bytes means that the recipient is nearly level.
const STEADY_BYTES_MAX: i64 = 256 * 1024;
/// After so many differences it is taken as level if the last was at most one batch: under steady load they no longer shrink.
const ROUNDS_MAX: usize = 20;
/// Pause between differences in the steady state.
const STEADY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    commit: bool,
    abort: bool,
    release: bool,
    /// The donor's fail point wants this shard to find out by itself what it owns.
    skip_refresh: bool,
}

#[derive(Default)]
struct Counts {
    cloned: AtomicI64,
    cloned_bytes: AtomicI64,
    catch_up: AtomicI64,
    steady: AtomicI64,
}

/// A migration towards this shard.
pub struct Reception {
    pub start: RecvStart,
    range: KeyRange,
    machine: Mutex<Recipient>,
    error: Mutex<Option<Error>>,
    counts: Counts,
    signals: watch::Sender<Signals>,
    changed: watch::Sender<u64>,
    step: AtomicI32,
    times: StepTimes,
}

impl Reception {
    pub fn new(start: RecvStart) -> Result<Reception> {
        let key = Arc::new(ShardKeyPattern::parse(&start.key)?);
        Ok(Reception {
            range: KeyRange::new(key, &start.min, &start.max)?,
            start,
            machine: Mutex::new(Recipient::start()),
            error: Mutex::new(None),
            counts: Counts::default(),
            signals: watch::Sender::new(Signals::default()),
            changed: watch::Sender::new(0),
            step: AtomicI32::new(0),
            times: StepTimes::of(7),
        })
    }
    /// Bytes of documents copied so far.
    pub fn cloned_bytes(&self) -> i64 {
        self.counts.cloned_bytes.load(Ordering::Relaxed)
    }
    /// How many of the seven steps are done.
    pub fn step(&self) -> i32 {
        self.step.load(Ordering::Relaxed)
    }
    pub fn state(&self) -> State {
        self.machine.lock().state()
    }
    fn action(&self) -> Action {
        self.machine.lock().action()
    }
    fn on(&self, event: Event) {
        self.machine.lock().on(event);
        self.changed.send_modify(|n| *n += 1);
    }
    fn signal(&self, f: impl FnOnce(&mut Signals)) {
        self.signals.send_modify(f);
    }
    /// Ends it unless the donor may be committing: then what came of that is waited for.
    pub(super) fn give_way(&self) {
        if !matches!(self.state(), State::EnteredCriticalSection | State::Done) {
            self.error.lock().get_or_insert_with(|| {
                err!(INTERRUPTED, "the migration gives way to a change of the collection")
            });
            self.signal(|s| s.abort = true);
        }
    }
    /// Waits until the state satisfies `f`.
    async fn wait_state(&self, f: impl Fn(State) -> bool) -> State {
        let mut changes = self.changed.subscribe();
        loop {
            let state = self.state();
            if f(state) || changes.changed().await.is_err() {
                return state;
            }
        }
    }
    /// The report of `_recvChunkStatus`.
    pub fn report(&self) -> Document {
        let (state, s) = (self.state(), &self.start);
        let mut d = doc! {
            "active": !is_over(state), "sessionId": s.session_id.as_str(), "ns": s.ns.as_str(), "from": s.from_host.as_str(),
            "fromShardId": s.from.as_str(), "min": s.min.clone(), "max": s.max.clone(),
            "shardKeyPattern": s.key.clone(), "state": state.name(),
        };
        if let Some(e) = self.error.lock().as_ref() {
            d.push("errmsg", e.message.as_str());
            d.push("errcode", e.code);
        }
        let n = |c: &AtomicI64| c.load(Ordering::Relaxed);
        let c = &self.counts;
        d.push(
            "counts",
            doc! { "cloned": n(&c.cloned), "clonedBytes": n(&c.cloned_bytes), "catchup": n(&c.catch_up), "steady": n(&c.steady) },
        );
        d
    }
}

fn is_over(state: State) -> bool {
    matches!(state, State::Done | State::Fail | State::Abort)
}

/// `_recvChunkStart`: registers the reception and lets it run.
pub async fn start(role: &Arc<ShardRole>, body: Doc<'_>) -> Result<Document> {
    let own = role.require_identity()?.name.clone();
    if role.parameters.bool("disableResumableRangeDeleter") {
        bail!(
            RESUMABLE_RANGE_DELETER_DISABLED,
            "Not allowed to receive chunks because the disableResumableRangeDeleter server parameter is set to true on this shard."
        );
    }
    let start = RecvStart::parse(body)?;
    if *own != *start.to {
        bail!(ILLEGAL_OPERATION, "shard {own} received the start of a migration to shard {}", start.to);
    }
    let reception = Arc::new(Reception::new(start)?);
    role.migrations.receive(reception.clone())?;
    add(&role.statistics.recipient_started, 1);
    let worker = Worker { role: role.clone(), reception: reception.clone() };
    if !role.spawn(worker.run()) {
        role.migrations.reception_ended(&reception);
        role.require_reign()?;
    }
    Ok(doc! { "started": true })
}

/// `_recvChunkStatus`.
pub async fn status(role: &Arc<ShardRole>, op: &Operation, asked: RecvChunkStatus) -> Result<Document> {
    let reception = match &asked.session {
        Some(session) => role.migrations.reception_of(session),
        None => role.migrations.reception(),
    };
    let Some(reception) = reception else { return Ok(doc! { "active": false }) };
    if asked.wait_until_steady.0 {
        let settled = reception.wait_state(|s| !matches!(s, State::Ready | State::Clone | State::CatchUp));
        let _ = op.interruptible(tokio::time::timeout(Duration::from_secs(1), settled)).await?;
        let mut report = doc! { "waited": true };
        for (name, value) in reception.report().iter() {
            report.push(name, value.clone());
        }
        return Ok(report);
    }
    Ok(reception.report())
}

fn session_of(role: &ShardRole, session: &str) -> Result<Arc<Reception>> {
    role.migrations
        .reception_of(session)
        .ok_or_else(|| err!(COMMAND_FAILED, "no migration with session id {session} is being received here"))
}

/// `_recvChunkCommit`: takes the last difference; answers when all of it is durable.
pub async fn commit(role: &Arc<ShardRole>, op: &Operation, asked: RecvChunkCommit) -> Result<Document> {
    let reception = session_of(role, &asked.session)?;
    if matches!(reception.state(), State::Ready | State::Clone | State::CatchUp) {
        bail!(COMMAND_FAILED, "the migration is not in the steady state but in {}", reception.state().name());
    }
    reception.signal(|s| s.commit = true);
    let ended = |s| matches!(s, State::EnteredCriticalSection) || is_over(s);
    match op.interruptible(reception.wait_state(ended)).await? {
        State::EnteredCriticalSection | State::Done => Ok(reception.report()),
        state => {
            let why = reception.error.lock().as_ref().map(|e| e.message.clone()).unwrap_or_default();
            bail!(COMMAND_FAILED, "_recvChunkCommit: the recipient is in state {}: {why}", state.name())
        }
    }
}

/// `_recvChunkAbort`: answers when nothing is written any more.
pub async fn abort(role: &Arc<ShardRole>, op: &Operation, asked: RecvChunkAbort) -> Result<Document> {
    let reception = match &asked.session {
        Some(session) => session_of(role, session)?,
        None => match role.migrations.reception() {
            Some(r) => r,
            None => return Ok(doc! { "active": false }),
        },
    };
    reception.signal(|s| s.abort = true);
    op.interruptible(reception.wait_state(is_over)).await?;
    Ok(reception.report())
}

/// `_recvChunkReleaseCritSec`.
pub async fn release(role: &Arc<ShardRole>, op: &Operation, asked: RecvChunkRelease) -> Result<Document> {
    let reception = session_of(role, &asked.session)?;
    let skip_refresh = asked.skip_refresh.0;
    reception.signal(|s| *s = Signals { release: true, skip_refresh, ..*s });
    op.interruptible(reception.wait_state(is_over)).await?;
    Ok(Document::new())
}

struct Worker {
    role: Arc<ShardRole>,
    reception: Arc<Reception>,
}

impl Worker {
    async fn run(self) {
        let mut unregistered = false;
        let success = loop {
            let action = self.reception.action();
            let signals = *self.reception.signals.borrow();
            let event = match action {
                Action::Finish { success } => break success,
                // A failure to remove the record leaves it to the next start.
                Action::Forget { .. } => self.attempt(action).await,
                _ if signals.abort => Event::AbortRequested,
                Action::Steady if signals.commit => Event::CommitRequested,
                Action::AwaitRelease if signals.release => Event::Released,
                _ => self.attempt_until_abort(action).await,
            };
            // Unregistered before the end can be seen: whoever waits for it may start the next migration at once.
            if !unregistered && self.ends_with(event) {
                unregistered = true;
                self.role.migrations.reception_ended(&self.reception);
            }
            self.reception.on(event);
        };
        let points = &self.role.node.failpoints;
        let skip = self.reception.signals.borrow().skip_refresh || points.should(SKIP_REFRESH);
        if success && !skip && !points.should(DO_NOT_REFRESH_RECIPIENT) {
            // The range is ours now; the first request would find out, but need not wait for it.
            let _ = self.role.refresh_collection(&self.reception.start.ns).await;
        }
        let s = &self.reception.start;
        let mut details = doc! { "min": s.min.clone(), "max": s.max.clone() };
        details.0.extend(self.reception.times.document());
        details.0.extend(doc! {
            "to": s.to.as_str(), "from": s.from.as_str(), "note": if success { "success" } else { "aborted" },
        });
        self.role.log_change("moveChunk.to", &s.ns, details).await;
    }
    fn ends_with(&self, event: Event) -> bool {
        let mut after = *self.reception.machine.lock();
        after.on(event);
        matches!(after.action(), Action::Forget { .. } | Action::Finish { .. })
    }

    async fn attempt(&self, action: Action) -> Event {
        match self.perform(action).await {
            Ok(()) => Event::Done,
            Err(e) => {
                self.reception.error.lock().get_or_insert(e);
                Event::Failed
            }
        }
    }
    /// A write is either made or not when its future is dropped, so an abort may cut in anywhere.
    async fn attempt_until_abort(&self, action: Action) -> Event {
        let mut signals = self.reception.signals.subscribe();
        tokio::select! {
            biased;
            _ = signals.wait_for(|s| s.abort) => Event::AbortRequested,
            event = self.attempt(action) => event,
        }
    }

    async fn perform(&self, action: Action) -> Result<()> {
        match action {
            Action::AwaitNoOverlap => self.await_no_overlap().await,
            Action::EnsureCollection => {
                self.step(1).await;
                self.ensure_collection().await
            }
            Action::WriteTask => {
                self.step(2).await;
                self.write_task().await?;
                self.step(3).await;
                Ok(())
            }
            Action::Clone => {
                if self.role.node.failpoints.should("failMigrationOnRecipient") {
                    bail!(OPERATION_FAILED, "failMigrationOnRecipient");
                }
                self.clone_range().await?;
                self.step(4).await;
                Ok(())
            }
            Action::CatchUp => {
                self.catch_up().await?;
                self.step(5).await;
                Ok(())
            }
            Action::Steady => self.steady().await,
            Action::Drain => {
                self.step(6).await;
                self.drain().await
            }
            Action::MakeDurable => {
                self.role.node.wait_all_committed().await?;
                self.step(7).await;
                Ok(())
            }
            Action::AwaitRelease => {
                let mut signals = self.reception.signals.subscribe();
                let _ = signals.wait_for(|s| s.release || s.abort).await;
                Ok(())
            }
            Action::Forget { .. } => {
                let id = doc! { "_id": Value::uuid(self.reception.start.id) };
                self.role.local.delete(RECIPIENTS, &id).await.map(|_| ())
            }
            Action::Finish { .. } => Ok(()),
        }
    }
    /// One of seven steps is done: currentOp shows its number, and its fail point holds the reception there.
    async fn step(&self, n: i32) {
        self.reception.step.store(n, Ordering::Relaxed);
        self.reception.times.done(n);
        self.role.node.failpoints.pause_while_set(&format!("migrateThreadHangAtStep{n}")).await;
    }

    async fn await_no_overlap(&self) -> Result<()> {
        let s = &self.reception.start;
        let limit = self.role.parameters.int("receiveChunkWaitForRangeDeleterTimeoutMS").max(0) as u64;
        let ended = range_deleter::no_overlap(&self.role, s.uuid, &self.reception.range);
        match tokio::time::timeout(Duration::from_millis(limit), ended).await {
            Ok(done) => done,
            Err(_) => bail!(
                CHUNK_RANGE_CLEANUP_PENDING,
                "Migration failed because the orphans cleanup routine didn't clear yet a portion of the range being migrated that was previously owned by the recipient shard."
            ),
        }
    }

    /// Makes the collection as it is on the donor.
    ///
    /// Only under the catalog's word, which is asked for here, after the reception was registered: an operation that drops
    /// or renames the collection first forbids its migrations in the catalog and then ends the receptions that are
    /// registered. So it either finds this one, or this one finds that migrations are forbidden.
    async fn ensure_collection(&self) -> Result<()> {
        self.confirm_by_catalog().await?;
        match self.make_collection().await {
            // Unless it has become another since the catalog was asked: then that is what is wrong.
            Err(e) if e.code == codes::INVALID_UUID => self.confirm_by_catalog().await.and(Err(e)),
            made => made,
        }
    }

    /// # Errors
    /// InvalidUUID (207) for a namesake.
    async fn make_collection(&self) -> Result<()> {
        let s = &self.reception.start;
        let slot = self.role.node.namespaces.slot(&s.ns);
        let op = Operation::internal();
        let specs = s
            .indexes
            .iter()
            .map(|spec| IndexSpec::parse(spec, &node::open::partial_predicate))
            .collect::<Result<Vec<IndexSpec>>>()?;
        self.role.node
            .write(&op, &slot, |unit| {
                if unit.state.view.is_some() {
                    bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "{} is a view on the recipient", s.ns);
                }
                match unit.collection() {
                    None => unit.create_collection(
                        CollectionMeta::with_options(s.ns.clone(), s.uuid, s.options.clone()),
                        true,
                    ),
                    Some(c) if c.uuid() != s.uuid => bail!(
                        INVALID_UUID,
                        "Cannot create collection {} because we already have an identically named collection with a different UUID",
                        s.ns
                    ),
                    Some(_) => {}
                }
                for spec in &specs {
                    let c = unit.existing()?;
                    if c.index(spec.name()).is_some() {
                        continue;
                    }
                    if !c.is_empty() {
                        bail!(
                            CANNOT_CREATE_COLLECTION,
                            "aborting, shard is missing {} indexes and collection is not empty. Non-trivial index creation should be scheduled manually",
                            specs.len()
                        );
                    }
                    unit.create_index_from(spec.document().clone())?;
                }
                Ok(())
            })
            .await?;
        Ok(())
    }

    /// # Errors
    /// ConflictingOperationInProgress (117) when the catalog has no such collection, or forbids its migrations.
    async fn confirm_by_catalog(&self) -> Result<()> {
        let s = &self.reception.start;
        let found = self.role.remote.find_config("collections", doc! { "_id": s.ns.as_str() }, None).await?;
        let info = found.first().and_then(CollectionInfo::from_document);
        match info.filter(|info| info.uuid == s.uuid) {
            Some(info) if info.allow_migrations => Ok(()),
            Some(_) => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Collection is undergoing changes so moveChunk is not allowed: {}",
                s.ns
            ),
            None => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Collection {} was dropped, renamed or made anew since its migration began",
                s.ns
            ),
        }
    }

    async fn write_task(&self) -> Result<()> {
        let s = &self.reception.start;
        let record = doc! {
            "_id": Value::uuid(s.id), "nss": s.ns.as_str(), "migrationSessionId": s.session_id.as_str(),
            "range": { "min": s.min.clone(), "max": s.max.clone() }, "donorShardId": s.from.as_str(),
            "lsid": s.lsid.clone(), "txnNumber": s.txn_number,
        };
        let task = range_deleter::received_task_document(s);
        let writes = [
            BatchWrite::Insert { ns: RECIPIENTS.to_string(), doc: record },
            BatchWrite::Insert { ns: TASKS.to_string(), doc: task },
        ];
        let op = Operation::internal();
        self.role.node.commit_batch(&op, &writes).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    async fn ask(&self, message: &impl Message) -> Result<DocBuf> {
        let donor = Target::Shard(&self.reception.start.from);
        self.role.remote.run(donor, "admin", message.to_document().to_doc_buf()).await
    }

    async fn next_documents(&self) -> Result<DocBuf> {
        let RecvStart { ns, session_id, .. } = &self.reception.start;
        self.ask(&MigrateClone { ns: ns.clone(), session: session_id.clone() }).await
    }

    async fn next_changes(&self) -> Result<DocBuf> {
        let RecvStart { ns, session_id, .. } = &self.reception.start;
        self.ask(&TransferMods { ns: ns.clone(), session: session_id.clone() }).await
    }

    async fn next_sessions(&self) -> Result<DocBuf> {
        let RecvStart { ns, session_id, .. } = &self.reception.start;
        self.ask(&GetNextSessionMods { ns: ns.clone(), session: session_id.clone() }).await
    }

    async fn clone_range(&self) -> Result<()> {
        let mut batch = self.next_documents().await?;
        loop {
            if is_empty(&batch, "objects") {
                break;
            }
            // The next batch travels while this one is written.
            let (inserted, next) = tokio::join!(self.insert_all(&batch), self.next_documents());
            inserted?;
            batch = next?;
        }
        self.take_sessions().await
    }

    /// The operation that writes what is copied, with the write concern that throttles it.
    fn throttled(&self) -> Result<Operation> {
        let mut op = Operation::internal();
        if let Some(concern) = &self.reception.start.throttle {
            op.write_concern = WriteConcern::parse(concern.to_doc_buf().doc())?;
            op.write_concern.given = true;
        }
        Ok(op)
    }

    async fn insert_all(&self, batch: &DocBuf) -> Result<()> {
        let docs: Vec<Doc<'_>> = documents(batch, "objects").collect();
        let slot = self.role.node.namespaces.slot(&self.reception.start.ns);
        let op = self.throttled()?;
        let parameter = |name: &str| self.role.parameters.int(name).max(0) as usize;
        let batch = match parameter("migrateCloneInsertionBatchSize") {
            0 => usize::MAX,
            n => n,
        };
        let pause = Duration::from_millis(parameter("migrateCloneInsertionBatchDelayMS") as u64);
        let (mut next, mut bytes) = (0, 0i64);
        while next < docs.len() {
            let end = docs.len().min(next.saturating_add(batch));
            self.role
                .node
                .write(&op, &slot, |unit| {
                    self.same_collection(unit)?;
                    let started = Instant::now();
                    while next < end && started.elapsed() < SLICE_TIME_MAX {
                        for doc in docs.iter().take(end).skip(next).take(16) {
                            unit.insert(*doc, Origin::MIGRATION)?;
                            bytes += doc.bytes().len() as i64;
                            next += 1;
                        }
                    }
                    Ok(())
                })
                .await?;
            if op.write_concern.given {
                // A concern that this set cannot meet throttles nothing.
                self.role.node.acknowledge(&op).await?;
            }
            match pause.is_zero() {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(pause).await,
            }
        }
        let n = docs.len() as i64;
        add(&self.reception.counts.cloned, n);
        add(&self.reception.counts.cloned_bytes, bytes);
        add(&self.role.statistics.cloned_on_recipient, n);
        add(&self.role.statistics.bytes_cloned_on_recipient, bytes);
        Ok(())
    }
    fn same_collection(&self, unit: &WriteUnit<'_>) -> Result<()> {
        if unit.existing()?.uuid() != self.reception.start.uuid {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "collection {} was dropped during its migration",
                unit.slot.ns
            );
        }
        Ok(())
    }

    async fn catch_up(&self) -> Result<()> {
        for round in 0.. {
            let size = self.difference(&self.reception.counts.catch_up).await?;
            if size <= STEADY_BYTES_MAX
                || (round >= ROUNDS_MAX && size <= super::source::BATCH_BYTES_MAX as i64)
            {
                break;
            }
        }
        self.take_sessions().await
    }
    async fn steady(&self) -> Result<()> {
        self.difference(&self.reception.counts.steady).await?;
        self.take_sessions().await?;
        let mut signals = self.reception.signals.subscribe();
        let _ = tokio::time::timeout(STEADY_PAUSE, signals.wait_for(|s| s.commit || s.abort)).await;
        Ok(())
    }
    /// The donor's writes wait by now: a difference that begins now holds everything routers sent. The loop is for those
    /// who write to the donor directly, past its versions, until they pause.
    async fn drain(&self) -> Result<()> {
        self.difference(&self.reception.counts.steady).await?;
        for _ in 0..100 {
            if self.difference(&self.reception.counts.steady).await? == 0 {
                break;
            }
        }
        self.take_sessions().await
    }

    /// Takes one difference, to its end; answers its bytes.
    async fn difference(&self, count: &AtomicI64) -> Result<i64> {
        let mut aside: Vec<DocBuf> = Vec::new();
        let mut total = 0;
        loop {
            let part = self.next_changes().await?;
            let size = part.doc().get_i64("size").unwrap_or(0);
            if size > 0 {
                total += size;
                self.apply_changes(&part, &mut aside).await?;
                let n = documents(&part, "reload").count() + documents(&part, "deleted").count();
                add(count, n as i64);
                add(&self.role.statistics.cloned_on_catch_up, n as i64);
                add(&self.role.statistics.bytes_on_catch_up, size);
            }
            if part.doc().get_bool("more") != Some(true) {
                break;
            }
        }
        self.write_aside(&aside).await?;
        Ok(total)
    }

    async fn apply_changes(&self, part: &DocBuf, aside: &mut Vec<DocBuf>) -> Result<()> {
        let deleted: Vec<Doc<'_>> = documents(part, "deleted").collect();
        let reload: Vec<Doc<'_>> = documents(part, "reload").collect();
        let slot = self.role.node.namespaces.slot(&self.reception.start.ns);
        let op = Operation::internal();
        let mut next = 0;
        let all = deleted.len() + reload.len();
        while next < all {
            self.role
                .node
                .write(&op, &slot, |unit| {
                    self.same_collection(unit)?;
                    let started = Instant::now();
                    while next < all && started.elapsed() < SLICE_TIME_MAX {
                        match deleted.get(next) {
                            Some(id) => self.remove(unit, *id)?,
                            None => match self.reload(unit, reload[next - deleted.len()]) {
                                Err(e) if e.code == codes::DUPLICATE_KEY => {
                                    aside.push(reload[next - deleted.len()].to_owned());
                                }
                                done => done?,
                            },
                        }
                        next += 1;
                    }
                    Ok(())
                })
                .await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
    /// Everything else stands as on the donor: with the old versions gone, the new ones must fit.
    async fn write_aside(&self, aside: &[DocBuf]) -> Result<()> {
        if aside.is_empty() {
            return Ok(());
        }
        let slot = self.role.node.namespaces.slot(&self.reception.start.ns);
        let op = Operation::internal();
        for doc in aside {
            self.role.node.write(&op, &slot, |unit| self.remove(unit, doc.doc())).await?;
        }
        for doc in aside {
            self.role.node.write(&op, &slot, |unit| self.reload(unit, doc.doc())).await?;
        }
        Ok(())
    }

    /// Deletes the document with this `_id` if it lies in the range: another chunk's may have the same.
    fn remove(&self, unit: &mut WriteUnit<'_>, id: Doc<'_>) -> Result<()> {
        if let Some((record, true)) = self.find(unit, id)? {
            unit.delete(record, Origin::MIGRATION)?;
        }
        Ok(())
    }
    fn reload(&self, unit: &mut WriteUnit<'_>, doc: Doc<'_>) -> Result<()> {
        match self.find(unit, doc)? {
            Some((record, true)) => unit.replace(record, doc, Origin::MIGRATION),
            // Not in the range, so not the one to replace: the insert fails on `_id` with the error to show.
            _ => unit.insert(doc, Origin::MIGRATION).map(|_| ()),
        }
    }
    /// The document with the `_id` of `doc`, and whether it lies in the range.
    fn find(&self, unit: &WriteUnit<'_>, doc: Doc<'_>) -> Result<Option<(RecordId, bool)>> {
        let id = doc.get("_id").unwrap_or(ValueRef::Null);
        let found = unit.existing()?.find_id(id);
        Ok(found.map(|(record, old)| (record, self.reception.range.contains(old))))
    }

    async fn take_sessions(&self) -> Result<()> {
        loop {
            let part = self.next_sessions().await?;
            if sessions::apply(&self.role, &self.reception.start.ns, &part).await? == 0 {
                return Ok(());
            }
        }
    }
}

fn documents<'a>(reply: &'a DocBuf, name: &str) -> impl Iterator<Item = Doc<'a>> {
    let list = reply.get(name).and_then(|v| v.as_array());
    list.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document())
}
fn is_empty(reply: &DocBuf, name: &str) -> bool {
    documents(reply, name).next().is_none()
}
