//! The donor's driver: performs the actions of `protocol::migration::donor` and says what came of them.

use super::changelog::StepTimes;
use super::range::{KeyRange, Most, measure, pieces, require_shard_key_index, total_bytes};
use super::request::{Coordinator, MoveRange, RecvStart};
use super::sessions::SessionSource;
use super::source::{Selection, Source};
use super::{COORDINATORS, uuid_of};
use crate::chunk::Chunk;
use crate::messages::chunks::{CommitChunkMigration, EnsureChunkVersion, MigratedChunk};
use crate::messages::migration::{
    GetNextSessionMods, MigrateClone, RecvChunkAbort, RecvChunkCommit, RecvChunkRelease, RecvChunkStatus,
    TransferMods,
};
use crate::messages::{Flag, Message};
use crate::remote::{Target, majority};
use crate::routing::{Routing, RoutingTable};
use crate::shard::ShardRole;
use crate::shard::range_deleter::{self, TASKS};
use crate::shard::refresh::SKIP_REFRESH;
use crate::shard::statistics::add;
use document::{DocBuf, Document, Error, Result, Value, bail, codes, doc, err};
use node::{BatchWrite, Operation};
use parking_lot::Mutex;
use protocol::migration::Decision;
use protocol::migration::donor::{Action, Donor, Event};
use protocol::version::ShardVersion;
use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use storage::{CollectionSnapshot, CollectionView};
use tokio::sync::watch;

/// Pauses between attempts at what must succeed in the end.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a running update or delete of many documents may hold the critical section up before the migration gives way.
const MULTI_WRITES_WAIT: Duration = Duration::from_secs(5);
/// A range with more than so many times a chunk's bytes is not moved unless forced.
const TOO_BIG_FACTOR: i64 = 2;
/// The fail point that leaves the recipient to find out by itself what it owns.
pub(super) const DO_NOT_REFRESH_RECIPIENT: &str = "doNotRefreshRecipientAfterCommit";
/// The reason of a migration's critical section.
const SECTION: &str = "moveChunk";
/// The reason of that of a migration found undecided at start.
pub(super) const RECOVERY_SECTION: &str = "recovering a migration";

/// What is handed out under a session.
struct Handout {
    ns: String,
    session_id: String,
    source: tokio::sync::Mutex<Source>,
    sessions: tokio::sync::Mutex<SessionSource>,
}

/// A migration away from this shard, while it runs.
pub struct Donation {
    pub request: MoveRange,
    handout: Mutex<Option<Arc<Handout>>>,
    outcome: watch::Sender<Option<Result<()>>>,
    step: AtomicI32,
    /// How long each step took, for the change log.
    pub(super) times: StepTimes,
    /// A change of the catalog wants it to give way.
    cancelled: watch::Sender<bool>,
    /// Known once the coordinator is made; also that of the range deletion task.
    id: Mutex<Option<[u8; 16]>>,
}

impl Donation {
    pub(super) fn new(request: MoveRange) -> Donation {
        Donation {
            request,
            handout: Mutex::new(None),
            outcome: watch::Sender::new(None),
            step: AtomicI32::new(0),
            times: StepTimes::of(6),
            cancelled: watch::Sender::new(false),
            id: Mutex::new(None),
        }
    }
    pub fn step(&self) -> i32 {
        self.step.load(Ordering::Relaxed)
    }
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }
    /// # Errors
    /// Interrupted (11601) once it was cancelled.
    fn check_cancelled(&self) -> Result<()> {
        match *self.cancelled.borrow() {
            true => Err(interrupted(&self.request.ns)),
            false => Ok(()),
        }
    }
    /// Runs `step` unless it is cancelled first.
    async fn unless_cancelled<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let mut cancelled = self.cancelled.subscribe();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|cancelled| *cancelled) => Err(interrupted(&self.request.ns)),
            done = step => done,
        }
    }
    async fn ended(&self) -> Result<()> {
        let mut outcome = self.outcome.subscribe();
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => bail!(INTERRUPTED_AT_SHUTDOWN, "the migration was interrupted"),
        }
    }
}

fn interrupted(ns: &str) -> Error {
    err!(INTERRUPTED, "the migration of {ns} was interrupted by a change of the collection")
}

/// Tells those who wait when the shard stops in the middle.
struct Ending(Arc<Donation>);
impl Drop for Ending {
    fn drop(&mut self) {
        self.0.outcome.send_if_modified(|outcome| {
            let unfinished = outcome.is_none();
            if unfinished {
                *outcome =
                    Some(Err(err!(INTERRUPTED_AT_SHUTDOWN, "the migration was interrupted by a shutdown")));
            }
            unfinished
        });
    }
}

/// What a request comes to, once the placement is known.
pub struct Plan {
    pub table: Arc<RoutingTable>,
    pub min: Document,
    pub max: Document,
    pub chunk: Arc<Chunk>,
    pub chunk_version: ShardVersion,
    pub range: KeyRange,
    pub index: usize,
    pub snapshot: CollectionSnapshot,
}

/// `_shardsvrMoveRange`: moves the range, or joins the migration that does. Goes on when the caller goes away.
///
/// # Errors
/// See facts 6; the error of the step that failed.
pub async fn move_range(role: &Arc<ShardRole>, op: &Operation, request: MoveRange) -> Result<()> {
    let own = role.require_identity()?.name.clone();
    if *own != *request.from {
        bail!(ILLEGAL_OPERATION, "shard {own} was asked to move a range away from shard {}", request.from);
    }
    let (donation, first) = role.migrations.donate(request)?;
    if first {
        // Made before the task is: that one may be dropped before it begins.
        let ending = Ending(donation.clone());
        let (of_task, donation) = (role.clone(), donation.clone());
        let runs = role.spawn(async move {
            let donation = &ending.0;
            let result = run(&of_task, donation).await;
            *donation.handout.lock() = None;
            of_task.migrations.donation_ended(donation);
            donation.outcome.send_replace(Some(result));
        });
        if !runs {
            role.migrations.donation_ended(&donation);
        }
    }
    op.interruptible(donation.ended()).await??;
    let id = *donation.id.lock();
    if let Some(id) = id.filter(|_| donation.request.wait_for_delete) {
        op.interruptible(range_deleter::gone(role, id)).await??;
    }
    Ok(())
}

async fn run(role: &Arc<ShardRole>, donation: &Arc<Donation>) -> Result<()> {
    let request = &donation.request;
    add(&role.statistics.donor_started, 1);
    step(role, donation, 1).await;
    let plan = donation.unless_cancelled(plan(role, request)).await?;
    let coordinator = Coordinator::new(&role.node, request, &plan);
    *donation.id.lock() = Some(coordinator.id);
    step(role, donation, 2).await;
    let source =
        Source::new(Selection::Range { range: plan.range.clone(), index: plan.index }, plan.snapshot.clone());
    let sessions = SessionSource::new(&role.node, &request.ns, Some(plan.range.clone()));
    *donation.handout.lock() = Some(Arc::new(Handout {
        ns: request.ns.clone(),
        session_id: coordinator.session_id.clone(),
        source: tokio::sync::Mutex::new(source),
        sessions: tokio::sync::Mutex::new(sessions),
    }));
    let range = coordinator.range();
    let ends = doc! { "from": request.from.as_str(), "to": request.to.as_str() };
    let mut bounds = range.clone();
    bounds.0.extend(ends.clone());
    role.log_change("moveChunk.start", &request.ns, bounds.clone()).await;
    let from = |note: &str, failure: Option<&Error>| {
        let mut d = range.clone();
        d.0.extend(donation.times.document());
        d.0.extend(ends.clone());
        d.push("note", note);
        if let Some(e) = failure {
            d.push("errmsg", e.message.as_str());
        }
        d
    };
    let mut driver = Driver::new(role.clone(), coordinator, Some((donation.clone(), plan)));
    let (decision, failure) = driver.drive(Donor::start()).await;
    match decision {
        Decision::Committed => {
            add(&role.statistics.donor_committed, 1);
            role.log_change("moveChunk.commit", &request.ns, bounds).await;
            role.log_change("moveChunk.from", &request.ns, from("success", None)).await;
            Ok(())
        }
        Decision::Aborted => {
            add(&role.statistics.donor_aborted, 1);
            let failure = failure.unwrap_or_else(|| {
                err!(OPERATION_INCOMPLETE, "the migration was aborted by the config server")
            });
            bounds.push("note", "aborted");
            bounds.push("errmsg", failure.message.as_str());
            role.log_change("moveChunk.error", &request.ns, bounds).await;
            role.log_change("moveChunk.from", &request.ns, from("aborted", Some(&failure))).await;
            Err(failure)
        }
    }
}

async fn step(role: &ShardRole, donation: &Donation, n: i32) {
    donation.step.store(n, Ordering::Relaxed);
    donation.times.done(n);
    role.node.failpoints.pause_while_set(&format!("moveChunkHangAtStep{n}")).await;
}

/// Checks a request against the placement in force and the data.
async fn plan(role: &Arc<ShardRole>, request: &MoveRange) -> Result<Plan> {
    let ns = &request.ns;
    let table = match role.refresh_collection(ns).await? {
        Routing::Sharded(table) => table,
        Routing::Unsharded => {
            bail!(
                INCOMPATIBLE_SHARDING_METADATA,
                "Cannot move chunks for a collection that isn't sharded: {ns}"
            )
        }
    };
    if request.epoch.is_some_and(|e| e != table.epoch) {
        bail!(STALE_EPOCH, "The epoch of collection {ns} has changed since the migration began");
    }
    if !table.allow_migrations {
        bail!(
            CONFLICTING_OPERATION_IN_PROGRESS,
            "Collection is undergoing changes so moveChunk is not allowed: {ns}"
        );
    }
    if table.chunks_owned_by(&request.from) == 0 {
        bail!(INCOMPATIBLE_SHARDING_METADATA, "Cannot move chunks of {ns}: this shard owns none");
    }
    let snapshot = snapshot(role, ns)?;
    if snapshot.meta().uuid != table.uuid {
        let now = role.refresh_collection(ns).await?;
        if !matches!(now, Routing::Sharded(now) if now.uuid == table.uuid && now.allow_migrations) {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "The collection {ns} has become another since the migration began"
            );
        }
        bail!(INVALID_UUID, "the collection {ns} here is not the one that the config server knows");
    }
    let key = table.key.clone();
    let index = require_shard_key_index(&snapshot, &key)?;
    let (min, max) = bounds(request, &table, &snapshot, index).await?;
    let range = KeyRange::new(key, &min, &max)?;
    if range.min >= range.max {
        bail!(INVALID_OPTIONS, "min {min:?} is not below max {max:?}");
    }
    let chunk = table.find(&range.min).clone();
    if *chunk.shard != *request.from || chunk.max_key < range.max {
        bail!(
            CONFLICTING_OPERATION_IN_PROGRESS,
            "Unable to move range with bounds {{ min: {min:?}, max: {max:?} }} of {ns}: it does not lie in one chunk of shard {}",
            request.from
        );
    }
    if request.force_jumbo == 0 {
        refuse_too_big(request, &snapshot, index, &range).await?;
    }
    let chunk_version = table.collection_version().at(chunk.version);
    Ok(Plan { table, min, max, chunk, chunk_version, range, index, snapshot })
}

fn snapshot(role: &ShardRole, ns: &str) -> Result<CollectionSnapshot> {
    let slot = role.node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    state.collection.as_ref().map(|c| c.snapshot()).ok_or_else(|| {
        err!(NAMESPACE_NOT_FOUND, "cannot move chunks for a collection that doesn't exist: {ns}")
    })
}

/// The full bounds: a bound that is missing is found so that the range is about as large as a chunk may be.
async fn bounds(
    request: &MoveRange,
    table: &RoutingTable,
    view: &CollectionSnapshot,
    index: usize,
) -> Result<(Document, Document)> {
    let min = match (&request.min, &request.max) {
        (Some(min), Some(max)) => return Ok((min.clone(), max.clone())),
        (Some(min), None) => min.clone(),
        (None, Some(max)) => {
            let max_key = table.key.encode_bound(max)?;
            // The chunk that ends there, or that the bound lies in.
            let chunk = table.chunks().take_while(|c| c.min_key < max_key).last();
            let chunk = chunk.ok_or_else(|| err!(INVALID_OPTIONS, "no chunk below max {max:?}"))?;
            return Ok((chunk.min.clone(), max.clone()));
        }
        (None, None) => bail!(INVALID_OPTIONS, "need to specify at least one of 'min' and 'max'"),
    };
    let chunk = table.find(&table.key.encode_bound(&min)?).clone();
    let range = KeyRange::new(table.key.clone(), &min, &chunk.max)?;
    let most = Most::of(view, request.max_bytes, request.max_objects);
    let end = pieces(view, index, &range, most, 1).await.into_iter().next();
    Ok((min, end.unwrap_or_else(|| chunk.max.clone())))
}

/// A range is too big when it has over twice the bytes that a chunk may have; where documents are counted, when it has
/// more than asked for, or over 1.3 times as many as a chunk of average ones would have.
///
/// # Errors
/// ChunkTooBig (153).
async fn refuse_too_big(
    request: &MoveRange,
    view: &CollectionSnapshot,
    index: usize,
    range: &KeyRange,
) -> Result<()> {
    let bytes_max = request.max_bytes.saturating_mul(TOO_BIG_FACTOR);
    if total_bytes(view) <= bytes_max && request.max_objects.is_none() {
        return Ok(());
    }
    let most = Most::of(view, request.max_bytes, request.max_objects);
    let (bytes, documents) = measure(view, index, range, bytes_max).await;
    if bytes > bytes_max || documents > most.documents {
        bail!(
            CHUNK_TOO_BIG,
            "Cannot move range: the maximum chunk size is {}, and the range of {} has more than {documents} documents with {bytes} bytes",
            request.max_bytes,
            request.ns
        );
    }
    Ok(())
}

/// Performs the machine's actions for one coordinator; also after a restart, then without a donation.
pub(super) struct Driver {
    role: Arc<ShardRole>,
    coordinator: Coordinator,
    running: Option<(Arc<Donation>, Plan)>,
    entered: Option<Instant>,
}

impl Driver {
    pub(super) fn new(
        role: Arc<ShardRole>,
        coordinator: Coordinator,
        running: Option<(Arc<Donation>, Plan)>,
    ) -> Driver {
        Driver { role, coordinator, running, entered: None }
    }

    /// Drives to the end; answers the outcome and the first failure.
    pub(super) async fn drive(&mut self, mut machine: Donor) -> (Decision, Option<Error>) {
        let mut failure: Option<Error> = None;
        let mut pause = PAUSE_MIN;
        loop {
            let action = machine.action();
            if let Action::Finish(decision) = action {
                return (decision, failure);
            }
            let event = match self.perform(action).await {
                Ok(event) => {
                    pause = PAUSE_MIN;
                    event
                }
                Err(e) => {
                    failure.get_or_insert(e);
                    if machine.repeats() {
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                    Event::Failed
                }
            };
            machine.on(event);
        }
    }

    async fn perform(&mut self, action: Action) -> Result<Event> {
        match action {
            Action::WriteCoordinator => self.write_coordinator().await?,
            Action::StartRecipient => self.start_recipient().await?,
            Action::AwaitSteady => self.await_steady().await?,
            Action::EnterCriticalSection => self.enter().await?,
            Action::CommitOnRecipient => self.commit_on_recipient().await?,
            Action::BlockReads => self.role.block_reads(&self.coordinator.ns),
            Action::CommitOnConfig => self.commit_on_config().await?,
            Action::ResolveOutcome => return self.resolve().await.map(Event::Outcome),
            Action::PersistDecision(decision) => self.persist(decision).await?,
            Action::Refresh(_) => self.refresh().await,
            Action::LeaveCriticalSection(decision) => self.leave(decision).await,
            Action::AbortRecipient => self.abort_recipient().await?,
            Action::SettleRecipientTask(decision) => {
                self.pause_at("hangBeforeSending", decision, "").await;
                self.settle_recipient_task(decision).await?;
            }
            Action::ReleaseRecipient => self.release_recipient().await?,
            Action::SettleOwnTask(decision) => self.settle_own_task(decision).await?,
            Action::ForgetCoordinator(decision) => {
                self.pause_at("hangBeforeForgettingMigrationAfter", decision, "").await;
                let id = doc! { "_id": Value::uuid(self.coordinator.id) };
                self.role.local.delete(COORDINATORS, &id).await?;
            }
            Action::Finish(_) => {}
        }
        Ok(Event::Done)
    }

    /// The fail points `<stem>CommitDecision<end>` and `<stem>AbortDecision<end>`.
    async fn pause_at(&self, stem: &str, decision: Decision, end: &str) {
        let decided = if decision == Decision::Committed { "Commit" } else { "Abort" };
        self.role.node.failpoints.pause_while_set(&format!("{stem}{decided}Decision{end}")).await;
    }
    async fn step(&self, n: i32) {
        if let Some((donation, _)) = &self.running {
            step(&self.role, donation, n).await;
        }
    }
    fn recipient(&self) -> Target<'_> {
        Target::Shard(&self.coordinator.recipient)
    }

    async fn write_coordinator(&self) -> Result<()> {
        let c = &self.coordinator;
        let when = match &self.running {
            Some((d, _)) if d.request.wait_for_delete => "now",
            _ => "delayed",
        };
        let task = range_deleter::task_document(c, when);
        let writes = [
            BatchWrite::Insert { ns: COORDINATORS.to_string(), doc: c.to_document() },
            BatchWrite::Insert { ns: TASKS.to_string(), doc: task },
        ];
        let op = Operation::internal();
        self.role.node.commit_batch(&op, &writes).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    async fn start_recipient(&self) -> Result<()> {
        let c = &self.coordinator;
        let Some((_, plan)) = &self.running else { bail!(INTERNAL_ERROR, "nothing runs") };
        let start = RecvStart {
            throttle: self.running.as_ref().and_then(|(d, _)| d.request.throttle.clone()),
            id: c.id,
            session_id: c.session_id.clone(),
            ns: c.ns.clone(),
            uuid: c.uuid,
            from: c.donor.clone(),
            from_host: self.role.node.options.host.clone(),
            to: c.recipient.clone(),
            min: c.min.clone(),
            max: c.max.clone(),
            key: c.key.clone(),
            options: plan.snapshot.meta().options.clone(),
            indexes: plan.snapshot.indexes().iter().map(|i| i.info().spec.document().clone()).collect(),
            lsid: c.lsid.to_document(),
            txn_number: c.txn_number,
        };
        self.role.remote.admin(self.recipient(), start.to_document()).await?;
        self.step(3).await;
        Ok(())
    }

    async fn await_steady(&self) -> Result<()> {
        let c = &self.coordinator;
        let started = Instant::now();
        loop {
            let ask = RecvChunkStatus {
                ns: c.ns.clone(),
                session: Some(c.session_id.clone()),
                wait_until_steady: Flag(true),
            };
            let Some((donation, _)) = &self.running else { bail!(INTERNAL_ERROR, "nothing runs") };
            let status = donation
                .unless_cancelled(self.role.remote.admin(self.recipient(), ask.to_document()))
                .await?;
            if status.get_str("sessionId").is_some_and(|s| s != c.session_id) {
                bail!(OPERATION_INCOMPLETE, "The recipient shard is in another migration: {status:?}");
            }
            match status.get_str("state") {
                Some("steady") => break,
                Some("ready" | "clone" | "catchup") => {}
                None => bail!(
                    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                    "The recipient shard knows nothing of the migration: it was restarted, or its primary is another one"
                ),
                Some(_) => {
                    let why = status.get_str("errmsg").unwrap_or("no reason given");
                    let code = status.get_i64("errcode").unwrap_or(codes::OPERATION_FAILED as i64) as i32;
                    return Err(Error::new(code, format!("Data transfer error: {why}")));
                }
            }
            // The recipient waits for its state to change, up to a second; this only spares a node that does not.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        add(&self.role.statistics.donor_clone_millis, started.elapsed().as_millis() as i64);
        self.step(4).await;
        Ok(())
    }

    async fn enter(&mut self) -> Result<()> {
        let ns = self.coordinator.ns.clone();
        // After a restart it is blocked since before anything was served.
        let Some((donation, _)) = &self.running else { return Ok(()) };
        donation.check_cancelled()?;
        let wait = Duration::from_millis(
            self.role.parameters.int("migrationLockAcquisitionMaxWaitMS").max(0) as u64,
        );
        match self.enter_after_multi_writes(&ns, wait).await {
            Ok(()) => self.entered = Some(Instant::now()),
            Err(e) => {
                if e.code == codes::LOCK_TIMEOUT {
                    add(&self.role.statistics.donor_lock_timeouts, 1);
                }
                return Err(e);
            }
        }
        // What was planned must still hold: the section began under the latch, so nothing changes from here.
        if let Err(e) = self.still_as_planned(&ns) {
            self.role.leave_section_of(&ns, SECTION);
            return Err(e);
        }
        let signalled = self.role.signal_secondaries(&ns).await;
        if signalled.is_err() {
            self.role.leave_section_of(&ns, SECTION);
        }
        signalled
    }

    /// A write of many documents keeps its ranges until it ends, so that it meets each document once.
    async fn enter_after_multi_writes(&self, ns: &str, wait: Duration) -> Result<()> {
        let slot = self.role.node.namespaces.slot(ns);
        let _ended = slot.let_ranges_go(wait.max(MULTI_WRITES_WAIT)).await?;
        self.role.enter_critical_section(ns, SECTION, wait).await
    }

    /// Whether placement, identity, options and indexes are those that the recipient was told of.
    fn still_as_planned(&self, ns: &str) -> Result<()> {
        let Some((_, plan)) = &self.running else { return Ok(()) };
        let placement = self.role.placement(ns);
        let same = placement.as_ref().and_then(|p| p.table()).is_some_and(|t| {
            t.timestamp == plan.table.timestamp && t.owns(&self.coordinator.donor, &plan.range.min)
        });
        let now = snapshot(&self.role, ns)?;
        if !same || now.meta().uuid != self.coordinator.uuid {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the placement of {ns} changed during its migration");
        }
        let indexes = |s: &CollectionSnapshot| -> Vec<Document> {
            s.indexes().iter().map(|i| i.info().spec.document().clone()).collect()
        };
        if indexes(&now) != indexes(&plan.snapshot) || now.meta().options != plan.snapshot.meta().options {
            add(&self.role.statistics.donor_index_aborts, 1);
            bail!(INTERRUPTED, "indexes or options of {ns} changed during its migration");
        }
        Ok(())
    }

    async fn commit_on_recipient(&self) -> Result<()> {
        let c = &self.coordinator;
        let commit = RecvChunkCommit {
            ns: c.ns.clone(),
            session: c.session_id.clone(),
            block_on_recipient: Flag(true),
        };
        self.role
            .remote
            .admin(self.recipient(), commit.to_document())
            .await
            .map_err(|e| e.context("_recvChunkCommit failed"))?;
        self.step(5).await;
        Ok(())
    }

    async fn commit_on_config(&self) -> Result<()> {
        let c = &self.coordinator;
        let Some((donation, plan)) = &self.running else { bail!(INTERNAL_ERROR, "nothing runs") };
        if self.role.node.failpoints.should("failMigrationCommit") {
            bail!(INTERNAL_ERROR, "Failing migration commit as requested by a fail point");
        }
        let begun = Instant::now();
        let commit = CommitChunkMigration {
            ns: c.ns.clone(),
            from: c.donor.clone(),
            to: c.recipient.clone(),
            chunk: MigratedChunk { min: c.min.clone(), max: c.max.clone(), known: Some(plan.chunk_version) },
            version: plan.table.collection_version(),
            valid_after: Some(self.role.node.cluster_time()),
            note: donation.request.note,
        };
        let answer = self.role.remote.admin(Target::Config, commit.with_majority()).await;
        add(&self.role.statistics.critical_section_commit_millis, begun.elapsed().as_millis() as i64);
        if self.role.node.failpoints.should("migrationCommitNetworkError") {
            bail!(HOST_UNREACHABLE, "migrationCommitNetworkError");
        }
        answer.map(|_| ()).map_err(|e| e.context("migration commit failed"))
    }

    /// Makes a commit that is still under way impossible, then reads the owner.
    async fn resolve(&self) -> Result<Decision> {
        let c = &self.coordinator;
        let bump = EnsureChunkVersion {
            min: c.min.clone(),
            max: c.max.clone(),
            version: c.version,
            ns: Some(c.ns.clone()),
            uuid: Some(c.uuid),
        };
        self.role.remote.admin(Target::Config, bump.with_majority()).await?;
        let found = self.role.remote.find_config("collections", doc! { "_id": c.ns.as_str() }, None).await?;
        if found.first().and_then(|d| uuid_of(d, "uuid")) != Some(c.uuid) {
            // Dropped: nobody owns the range, and both sides' tasks will find no collection.
            return Ok(Decision::Aborted);
        }
        let table = match self.role.cache.refresh_collection(&c.ns).await? {
            Routing::Sharded(table) if table.uuid == c.uuid => table,
            _ => return Ok(Decision::Aborted),
        };
        let key = table.key.encode_bound(&c.min)?;
        // The donor's own task keeps the range from coming back, so any other owner means that it was committed.
        let owned = table.owns(&c.donor, &key);
        Ok(if owned { Decision::Aborted } else { Decision::Committed })
    }

    async fn persist(&mut self, decision: Decision) -> Result<()> {
        self.pause_at("hangBeforeMaking", decision, "Durable").await;
        let id = Value::uuid(self.coordinator.id);
        self.role.persist_config_time().await?;
        self.role.local.modify(COORDINATORS, &id, |d| d.insert("decision", decision.name())).await?;
        self.coordinator.decision = Some(decision);
        Ok(())
    }

    /// The filter changes here, under the latch; the section still holds everybody back.
    async fn refresh(&self) {
        self.role.node.failpoints.pause_while_set("hangBeforePostMigrationCommitRefresh").await;
        if self.role.node.failpoints.should(SKIP_REFRESH) {
            return self.role.clear_placement(&self.coordinator.ns);
        }
        if self.role.refresh_collection(&self.coordinator.ns).await.is_err() {
            self.role.clear_placement(&self.coordinator.ns);
        }
    }

    async fn leave(&mut self, decision: Decision) {
        // A DDL operation that was interrupted as well may hold one of its own, which stays.
        let reason = if self.running.is_some() { SECTION } else { RECOVERY_SECTION };
        self.role.leave_section_of(&self.coordinator.ns, reason);
        if let Some(entered) = self.entered.take() {
            add(&self.role.statistics.critical_section_millis, entered.elapsed().as_millis() as i64);
        }
        if decision == Decision::Committed {
            self.step(6).await;
        }
    }

    async fn abort_recipient(&self) -> Result<()> {
        let c = &self.coordinator;
        self.tell_recipient(&RecvChunkAbort { ns: c.ns.clone(), session: Some(c.session_id.clone()) }).await
    }

    async fn release_recipient(&self) -> Result<()> {
        let c = &self.coordinator;
        let skip_refresh = Flag(self.role.node.failpoints.should(DO_NOT_REFRESH_RECIPIENT));
        let release = RecvChunkRelease { ns: c.ns.clone(), session: c.session_id.clone(), skip_refresh };
        self.tell_recipient(&release).await
    }

    /// Abort or release; a recipient that knows nothing of the session has nothing to end.
    async fn tell_recipient(&self, message: &impl Message) -> Result<()> {
        match self.role.remote.admin(self.recipient(), message.with_majority()).await {
            Ok(_) => Ok(()),
            Err(e) if matches!(e.code, codes::COMMAND_FAILED | codes::SHARD_NOT_FOUND) => Ok(()),
            Err(e) => Err(e),
        }
    }

    async fn settle_recipient_task(&self, decision: Decision) -> Result<()> {
        let id = doc! { "_id": Value::uuid(self.coordinator.id) };
        let command = match decision {
            Decision::Committed => doc! {
                "delete": "rangeDeletions", "deletes": vec![doc! { "q": id, "limit": 1 }], "writeConcern": majority(),
            },
            Decision::Aborted => doc! {
                "update": "rangeDeletions",
                "updates": vec![doc! {
                    "q": id, "u": { "$unset": { "pending": "" }, "$set": { "whenToClean": "now" } },
                }],
                "writeConcern": majority(),
            },
        };
        match self.role.remote.run(self.recipient(), "config", command.to_doc_buf()).await {
            Ok(reply) => {
                match reply.to_document().get_array("writeErrors").and_then(|a| a.first().cloned()) {
                    Some(e) => {
                        bail!(OPERATION_FAILED, "the recipient's range deletion task was not settled: {e:?}")
                    }
                    None => Ok(()),
                }
            }
            Err(e) if e.code == codes::SHARD_NOT_FOUND => Ok(()),
            Err(e) => Err(e),
        }
    }

    async fn settle_own_task(&self, decision: Decision) -> Result<()> {
        let id = Value::uuid(self.coordinator.id);
        if decision == Decision::Aborted {
            self.role.local.delete(TASKS, &doc! { "_id": id }).await?;
            return Ok(());
        }
        let handout = self.running.as_ref().and_then(|(d, _)| d.handout.lock().clone());
        let documents = match handout {
            Some(h) => h.source.lock().await.documents.max(0),
            None => 0,
        };
        let now = self.role.node.cluster_time();
        let ready_at = self.role.node.now_ms();
        self.role
            .local
            .modify(TASKS, &id, |d| {
                if d.remove("pending").is_some() {
                    d.insert("numOrphanDocs", documents);
                    d.insert("timestamp", now);
                    d.insert("readyAt", Value::DateTime(ready_at));
                }
            })
            .await?;
        Ok(())
    }
}

/// What is handed out of the collection under a session.
///
/// # Errors
/// NotYetInitialized (94) without a migration, IllegalOperation (20) for another session.
fn handout_of(role: &ShardRole, ns: &str, session: &str) -> Result<Arc<Handout>> {
    let Some(donation) = role.migrations.donation() else {
        bail!(NOT_YET_INITIALIZED, "No active migrations were found for collection {ns}")
    };
    let handout = donation.handout.lock().clone();
    let Some(handout) = handout else { bail!(NOT_YET_INITIALIZED, "the migration has not begun") };
    if *session != handout.session_id {
        bail!(
            ILLEGAL_OPERATION,
            "Requested migration session id {session} does not match active session id {}",
            handout.session_id
        );
    }
    Ok(handout)
}

/// `_migrateClone`.
///
/// # Errors
/// Those of [`handout_of`].
pub async fn hand_out_documents(role: &ShardRole, asked: MigrateClone) -> Result<DocBuf> {
    let handout = handout_of(role, &asked.ns, &asked.session)?;
    let mut source = handout.source.lock().await;
    let (docs, bytes) = (source.cloned, source.cloned_bytes);
    let batch = source.clone_batch().await?;
    add(&role.statistics.cloned_on_donor, source.cloned - docs);
    add(&role.statistics.bytes_cloned_on_donor, source.cloned_bytes - bytes);
    Ok(batch)
}

/// `_transferMods`.
///
/// # Errors
/// Those of [`handout_of`].
pub async fn hand_out_changes(role: &ShardRole, asked: TransferMods) -> Result<DocBuf> {
    let handout = handout_of(role, &asked.ns, &asked.session)?;
    handout.source.lock().await.changes(|| snapshot(role, &handout.ns)).await
}

/// `_getNextSessionMods`.
///
/// # Errors
/// Those of [`handout_of`].
pub async fn hand_out_sessions(role: &ShardRole, asked: GetNextSessionMods) -> Result<DocBuf> {
    let handout = handout_of(role, &asked.ns, &asked.session)?;
    handout.sessions.lock().await.next(&role.node).await
}
