//! `_shardsvrStandstill`: a shard's part in what happens to all data of the cluster at once. The config server drives it (`config/whole`).
//!
//! ```text
//! quiesce    the lock that every change of the catalog shares is taken; no migration begins, those under way end
//! begin      clients wait (node::standstill): for writes, or for reads too. Where reads wait, it is written down first.
//!            Prepared transactions end; whether what follows can be done is seen
//! take       what the shard has is kept under a name                   holds: only if the standstill was never interrupted
//! putBack    what the shard has is exchanged for what is kept
//! copy       a database is copied
//! confirm    nothing; succeeds if the standstill was never interrupted
//! end        what was known of placement is forgotten; clients go on
//! ```
//! Every step can be repeated. A standstill that holds writes alone is kept in memory and ends by itself when no step has come for [`LEASE`], so that a
//! config server that is gone stops no writes for longer (before `begin`, when clients do not wait yet, for [`QUIET_LEASE`]); both are longer than what any
//! shard, or the config server, waits between two steps. One that holds reads too, in which data is exchanged, is a document of
//! `config.collection_critical_sections`, survives restarts and ends by its coordinator alone. That document also tells secondaries that what they know
//! of placement is void.
//!
//! Invariant: from `begin` to `end` nothing is deleted here by what is known of ownership (`range_deleter`): it is not of the data.

use super::Ddl;
use super::block::SECTIONS;
use super::fence;
use super::locks::{Held, Purpose, STANDSTILL_WAIT};
use crate::config::CATALOG_WAIT;
use crate::messages::standstill::{Begin, DatabaseCopy, End, KeptPart, PutBack, Step};
use crate::shard::ShardRole;
use crate::shard::range_deleter::{TASKS, look_again};
use document::{Document, Result, Value, bail, doc, err};
use node::fork::{self, ForkOrder, Part};
use node::standstill::Extent;
use node::{Operation, Request};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The section that concerns every namespace. DO NOT CHANGE: on disk.
pub const EVERYTHING: &str = "*";
const MIGRATIONS_WAIT: Duration = Duration::from_secs(60);
/// How long writes of many documents that have begun may take to end. One over several shards may wait itself.
const MULTI_WRITES_WAIT: Duration = Duration::from_millis(200);
const PREPARED_WAIT: Duration = Duration::from_secs(20);

/// What goes by between two steps beside the waits that are bounded here: the network, and majorities.
const MARGIN: Duration = Duration::from_secs(40);
/// From `quiesce` to `begin`, while clients go on: the slowest shard becomes quiet, and the catalog is locked.
pub(super) const QUIET_LEASE: Duration =
    STANDSTILL_WAIT.saturating_add(MIGRATIONS_WAIT).saturating_add(CATALOG_WAIT).saturating_add(MARGIN);
/// From one step to the next afterwards, while clients wait: the slowest shard waits for what has begun there.
pub(super) const LEASE: Duration = PREPARED_WAIT.saturating_add(MULTI_WRITES_WAIT).saturating_add(MARGIN);

/// A standstill of this shard.
struct Standing {
    coordinator: [u8; 16],
    /// Clients wait.
    begun: bool,
    /// When it ends by itself if no step comes, unless it is written down. Dropped at its end.
    until: watch::Sender<Instant>,
    _held: Held,
}

impl Standing {
    fn new(coordinator: [u8; 16], begun: bool, held: Held) -> Standing {
        let until = watch::Sender::new(Instant::now() + QUIET_LEASE);
        Standing { coordinator, begun, until, _held: held }
    }
}

#[derive(Default)]
pub(super) struct Standstill {
    standing: Mutex<Option<Standing>>,
    /// Reigns of this member that have ended; changed under the lock above.
    ended_reigns: AtomicU64,
}

impl Standstill {
    fn ended_reigns(&self) -> u64 {
        self.ended_reigns.load(Ordering::SeqCst)
    }
}

impl Ddl {
    /// Runs `_shardsvrStandstill`.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) for a standstill of another coordinator, IllegalOperation (20) for a step of one that is not in force;
    /// LockBusy (46), ExceededTimeLimit (262) for what does not end in time; those of the step.
    pub(super) async fn standstill_step(&self, request: Request<'_>) -> Result<Document> {
        let body = request.body.to_document();
        let run = body.get_document(fence::MEMBER).and_then(fence::Run::from_document);
        let Some(coordinator) = run.map(|run| run.coordinator) else {
            bail!(FAILED_TO_PARSE, "a step of a standstill must say whose it is")
        };
        let mut op = Operation::internal();
        op.write_concern = node::operation::WriteConcern::majority();
        let step = Step::read(&body)?;
        match &step {
            Step::Quiesce(_) => self.quiesce(coordinator).await?,
            Step::End(end) => self.end_standstill(&op, coordinator, end).await?,
            _ => {
                self.stand_still_as_written(coordinator).await?;
                self.renew(coordinator, !matches!(step, Step::Begin(_)))?;
            }
        }
        let name = step.name();
        self.role.node.failpoints.pause_while_set(&format!("hangStandstillAt_{name}")).await;
        let reply = match &step {
            Step::Begin(begin) => self.begin_standstill(coordinator, begin).await?,
            Step::Take(take) => self.take_own(&op, &take.part).await?,
            Step::PutBack(put_back) => self.put_back_own(&op, put_back).await?,
            Step::CopyDatabase(order) => self.copy_own(&op, &order.copy).await?,
            Step::Quiesce(_) | Step::Confirm(_) | Step::End(_) => Document::new(),
        };
        self.role.node.wait_operation_committed(&op).await?;
        self.role.node.failpoints.pause_while_set(&format!("hangStandstillAfter_{name}")).await;
        if matches!(step, Step::Take(_)) {
            self.require_standing(coordinator, true)?;
        }
        Ok(reply)
    }

    /// As [`Ddl::require_standing`]; the lease begins anew.
    fn renew(&self, coordinator: [u8; 16], begun: bool) -> Result<()> {
        if let Some(standing) =
            self.standstill.standing.lock().as_ref().filter(|s| s.coordinator == coordinator)
        {
            standing.until.send_replace(Instant::now() + LEASE);
        }
        self.require_standing(coordinator, begun)
    }

    fn require_standing(&self, coordinator: [u8; 16], begun: bool) -> Result<()> {
        let standing = self.standstill.standing.lock();
        match standing.as_ref().filter(|s| s.coordinator == coordinator && (s.begun || !begun)) {
            Some(_) => Ok(()),
            None => bail!(ILLEGAL_OPERATION, "the standstill of this shard is over, or has not begun"),
        }
    }

    async fn quiesce(&self, coordinator: [u8; 16]) -> Result<()> {
        let reign = self.standstill.ended_reigns();
        let other = self.standstill.standing.lock().as_ref().map(|s| s.coordinator);
        match other {
            Some(other) if other == coordinator => return Ok(()),
            Some(_) => {
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "this shard stands still for another operation")
            }
            None => {}
        }
        let held = self.locks.take_for(Purpose::Standstill, &[], "a standstill of the cluster").await?;
        let standing = Standing::new(coordinator, false, held);
        let lease = standing.until.subscribe();
        self.enter_standstill(reign, standing)?;
        // One whose coordinator never comes back must not keep the catalog as it is.
        self.end_by_itself(coordinator, lease);
        let ended = tokio::time::timeout(MIGRATIONS_WAIT, self.role.migrations.end_all()).await;
        ended.map_err(|_| {
            err!(EXCEEDED_TIME_LIMIT, "a migration of this shard did not end within {MIGRATIONS_WAIT:?}")
        })
    }

    /// No migration begins from now on, and clients wait where they are to.
    ///
    /// # Errors
    /// InterruptedDueToReplStateChange (11602) where the reign has ended in which this began: nobody would end it.
    fn enter_standstill(&self, reign: u64, standing: Standing) -> Result<()> {
        let mut place = self.standstill.standing.lock();
        if self.standstill.ended_reigns() != reign {
            bail!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "this member has ceased to be the shard's primary")
        }
        self.role.migrations.hold();
        if standing.begun {
            self.role.node.stand_still(Extent::ReadsAndWrites);
        }
        *place = Some(standing);
        Ok(())
    }

    /// Answers `{fromExists?, toExists?}`. Whether what follows can be done here is seen now, while all can still be undone.
    async fn begin_standstill(&self, coordinator: [u8; 16], begin: &Begin) -> Result<Document> {
        let node = &self.role.node;
        if let Some(KeptPart { name, id }) = &begin.requires
            && !fork::holds_snapshot(node, name, *id)
        {
            bail!(NAMESPACE_NOT_FOUND, "shard {} does not have its part of the snapshot", self.shard()?);
        }
        let extent = if begin.reads.0 { Extent::ReadsAndWrites } else { Extent::Writes };
        if extent == Extent::ReadsAndWrites {
            let section = doc! {
                "_id": EVERYTHING, "reason": { "coordinator": Value::uuid(coordinator) }, "blockReads": true,
            };
            self.role.local.put(SECTIONS, &section).await?;
        }
        if let Some(standing) =
            self.standstill.standing.lock().as_mut().filter(|s| s.coordinator == coordinator)
        {
            standing.begun = true;
            node.stand_still(extent);
        }
        self.require_standing(coordinator, true)?;
        // What is prepared is in no tree yet, and belongs to a moment before this one. One whose coordinator cannot be reached must not keep
        // the cluster.
        let ended = tokio::time::timeout(PREPARED_WAIT, node.wait_prepared_ended()).await;
        ended.map_err(|_| {
            err!(EXCEEDED_TIME_LIMIT, "a prepared transaction did not end within {PREPARED_WAIT:?}")
        })?;
        self.multi_writes_pass().await;
        if begin.restore.0 {
            let name = begin.requires.as_ref().map(|part| part.name.as_str());
            fork::check_restore(node, name, Part::Shard)?;
        }
        let Some(copy) = &begin.copy else { return Ok(Document::new()) };
        fork_order(copy).check(node)?;
        let exists = |name: &str| fork::has_collections(node, name);
        Ok(doc! { "fromExists": exists(&copy.from), "toExists": exists(&copy.to) })
    }

    /// Waits for the updates and deletes of many documents that began before: their versions were compared when they began.
    async fn multi_writes_pass(&self) {
        let until = Instant::now() + MULTI_WRITES_WAIT;
        for slot in self.role.node.namespaces.visible() {
            let left = until.saturating_duration_since(Instant::now());
            if slot.read_unchecked().collection.is_some() {
                drop(slot.let_ranges_go(left).await);
            }
        }
    }

    /// Ends a standstill of writes when its coordinator is not heard of any more.
    fn end_by_itself(&self, coordinator: [u8; 16], mut lease: watch::Receiver<Instant>) {
        let ddl = self.me.clone();
        self.role.spawn(async move {
            loop {
                let until = *lease.borrow_and_update();
                tokio::select! {
                    // Not always later: the lease while clients wait is the shorter one.
                    renewed = lease.changed() => match renewed {
                        Ok(()) => continue,
                        Err(_) => return,
                    },
                    () = tokio::time::sleep_until(until) => {}
                }
                if ddl.upgrade().is_none_or(|ddl| ddl.end_lease(coordinator)) {
                    return;
                }
            }
        });
    }

    /// Ends a standstill of writes whose lease is over; false when the lease was renewed meanwhile.
    fn end_lease(&self, coordinator: [u8; 16]) -> bool {
        let mut standing = self.standstill.standing.lock();
        let is_over = standing.as_ref().is_none_or(|s| *s.until.borrow() <= Instant::now());
        // Under this lock, under which it grows: a lease must not end what was written down.
        if is_over && !self.role.node.namespaces.standstill.holds(Extent::ReadsAndWrites) {
            self.let_go(&mut standing, coordinator);
        }
        is_over
    }

    /// Answers `{namespaces}`.
    async fn take_own(&self, op: &Operation, part: &KeptPart) -> Result<Document> {
        let taken = fork::take_part(&self.role.node, op, &part.name, Part::Shard, part.id).await?;
        let namespaces: Vec<String> = taken.into_iter().filter(|ns| ns != TASKS).collect();
        Ok(doc! { "namespaces": namespaces })
    }

    async fn put_back_own(&self, op: &Operation, put_back: &PutBack) -> Result<Document> {
        let reported: BTreeSet<String> = put_back.reported.iter().cloned().collect();
        let (node, name) = (&self.role.node, put_back.name.as_deref());
        fork::restore_part(node, op, name, Part::Shard, Some(reported)).await?;
        self.role.local.ensure_collection(TASKS, &[]).await?;
        Ok(Document::new())
    }

    /// Answers `{namespaces}`.
    async fn copy_own(&self, op: &Operation, copy: &DatabaseCopy) -> Result<Document> {
        let order = fork_order(copy);
        let copies = fork::fork_part(&self.role.node, op, &order).await?;
        self.copy_range_deletions(&order).await?;
        Ok(doc! { "namespaces": copies })
    }

    /// What the shard has of a collection and does not own, it has of the copy too.
    async fn copy_range_deletions(&self, order: &ForkOrder) -> Result<()> {
        let local = &self.role.local;
        for (collection, uuid) in &order.uuids {
            // Those of an earlier run of this step.
            local.delete(TASKS, &doc! { "collectionUuid": Value::uuid(*uuid) }).await?;
            // By what it is: a task has the name that its collection had before a rename.
            let original = self.role.node.namespaces.slot(&format!("{}.{collection}", order.from));
            let original = original.read_unchecked().collection.as_ref().map(|c| Value::uuid(c.uuid()));
            let Some(original) = original else { continue };
            for mut task in local.find(TASKS, &doc! { "collectionUuid": original })? {
                task.insert("_id", Value::uuid(self.role.node.new_uuid()));
                task.insert("nss", format!("{}.{collection}", order.to));
                task.insert("collectionUuid", Value::uuid(*uuid));
                local.put(TASKS, &task).await?;
            }
        }
        Ok(())
    }

    async fn end_standstill(&self, op: &Operation, coordinator: [u8; 16], end: &End) -> Result<()> {
        if end.forget.0 && self.require_standing(coordinator, true).is_ok() {
            self.role.forget_all_placement().await;
        }
        if self.written()? == Some(coordinator) {
            self.role.local.delete(SECTIONS, &doc! { "_id": EVERYTHING }).await?;
        }
        self.let_go(&mut self.standstill.standing.lock(), coordinator);
        look_again(&self.role);
        for name in &end.drop {
            match fork::drop_snapshot(&self.role.node, op, name).await {
                Err(e) if e.code != document::codes::NAMESPACE_NOT_FOUND => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Clients, migrations and changes of the catalog go on.
    fn let_go(&self, standing: &mut Option<Standing>, coordinator: [u8; 16]) {
        if standing.as_ref().is_some_and(|s| s.coordinator == coordinator) {
            self.role.node.namespaces.standstill.end();
            self.role.migrations.let_go();
            *standing = None;
        }
    }

    /// The next primary takes it up.
    pub(super) fn forget_standstill(&self) {
        // In the middle of an exchange, what this member knows is not of the data that it has.
        self.role.signals.raise_all();
        let mut standing = self.standstill.standing.lock();
        self.standstill.ended_reigns.fetch_add(1, Ordering::SeqCst);
        self.role.node.namespaces.standstill.end();
        self.role.migrations.let_go();
        *standing = None;
    }

    /// Takes up a standstill of this coordinator that was written down and could not be taken up when the reign began.
    async fn stand_still_as_written(&self, coordinator: [u8; 16]) -> Result<()> {
        let stands = self.standstill.standing.lock().is_some();
        match !stands && self.written()? == Some(coordinator) {
            true => self.stand_still_again().await,
            false => Ok(()),
        }
    }

    /// The coordinator of the standstill that is written down.
    fn written(&self) -> Result<Option<[u8; 16]>> {
        let section = self.role.local.find_one(SECTIONS, &doc! { "_id": EVERYTHING })?;
        Ok(section.as_ref().and_then(coordinator_of))
    }

    /// Takes up a standstill that was written down. Clients wait already ([`ShardRole::stand_still_if_written`]).
    pub(super) async fn stand_still_again(&self) -> Result<()> {
        let reign = self.standstill.ended_reigns();
        let Some(coordinator) = self.written()? else { return Ok(()) };
        let held = self.locks.take_for(Purpose::Standstill, &[], "a standstill of the cluster").await?;
        // It may have ended while the lock was waited for.
        if self.written()? != Some(coordinator) {
            return Ok(());
        }
        self.enter_standstill(reign, Standing::new(coordinator, true, held))?;
        self.role.migrations.end_all().await;
        Ok(())
    }
}

fn fork_order(copy: &DatabaseCopy) -> ForkOrder {
    let uuids = copy.uuids.iter().filter_map(|(name, uuid)| Some((name.to_string(), uuid.as_uuid()?)));
    ForkOrder {
        from: copy.from.clone(),
        to: copy.to.clone(),
        only_these: !copy.primary.0,
        uuids: uuids.collect(),
    }
}

fn coordinator_of(section: &Document) -> Option<[u8; 16]> {
    section.get_document("reason")?.get("coordinator")?.as_uuid()
}

impl ShardRole {
    /// Lets clients wait where an exchange of all data was under way, before anything begins that looks at ownership.
    pub(crate) fn stand_still_if_written(&self) -> Result<()> {
        if self.local.find_one(SECTIONS, &doc! { "_id": EVERYTHING })?.is_some() {
            self.node.stand_still(Extent::ReadsAndWrites);
        }
        Ok(())
    }

    /// Knows nothing of placement any more. A reading that is under way is installed first, and forgotten too.
    async fn forget_all_placement(&self) {
        for slot in self.node.namespaces.all() {
            let flight = self.flight(&slot.ns);
            let _one = flight.lock().await;
            self.clear_placement(&slot.ns);
        }
        let databases: BTreeSet<String> =
            self.node.namespaces.all().iter().map(|slot| slot.database.name.clone()).collect();
        for db in databases {
            let flight = self.flight(&db);
            let _one = flight.lock().await;
            self.clear_database(&db);
        }
    }
}
