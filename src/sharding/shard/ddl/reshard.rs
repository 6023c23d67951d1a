//! `_shardsvrReshardCollection`: reshardCollection, moveCollection and unshardCollection, which are one thing.
//!
//! A copy of the collection, with a UUID of its own, is made on the shards that will own it, and takes the collection's place.
//!
//! ```text
//! checkPreconditions    what is asked makes sense for the collection as it is
//! freezeMigrations      no chunk moves while it is copied
//! initialize            who owns what and who will; the config server notes the operation in config.reshardingOperations
//! clone                 donors take snapshots, recipients copy them, then what changed since, until little is left
//! blockWrites           writes wait on every shard; recipients take what is left, and all of it is durable
//! commit                reads wait too; the config server's documents name the copy, at once
//! switchCollections     on every shard the copy takes the name, and what had it goes
//! unblockCRUD           those who waited learn the new placement
//! clean                 chunks of the old collection and the operation's document go
//! ```
//! What shards know of it is in memory (`shard/resharding`): when one has restarted, `clone` begins anew, and `blockWrites` gives
//! up. An abort is heeded until `blockWrites` has ended. After the commit everything is repeated until it is done.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace};
use super::joining::{Outcome, ended};
use super::locks::Purpose;
use super::reshard_plan::{Planned, is_unique};
use super::{COORDINATORS, Ddl, timeseries};
use crate::config::{required, required_str};
use crate::driver::phase_of;
use crate::messages::ddl::ParticipantBlock;
use crate::messages::resharding::{
    Distribution, ReshardAbort, ReshardCatchUp, ReshardClone, ReshardConfirm, ReshardDonate, ReshardDrain,
    ReshardPrepare, ReshardSample, ReshardSwitch, Resharding, ReshardingBegin, ReshardingCommit,
    ReshardingEnd, ReshardingSetState, ZoneToCome,
};
use crate::messages::{self, Flag, Message};
use crate::remote::Target;
use crate::routing::table::SERIES;
use crate::shard::resharding::progress::{self, Progress};
use crate::shard::resharding::{self, donor, recipient};
use crate::shard::statistics::add;
use document::{Document, Error, Result, Timestamp, Value, bail, codes, doc, err};
use futures::future::BoxFuture;
use node::{Operation, Request};
use parking_lot::Mutex;
use protocol::ddl::protocols::ReshardPhase;
use protocol::ddl::{Protocol, UNDO, protocols};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Differences of at most this many bytes mean that recipients are nearly level.
const LEVEL_BYTES_MAX: i64 = 256 * 1024;
/// After so many differences writes are blocked whatever their size: under steady load they no longer shrink.
const ROUNDS_MAX: usize = 20;
/// How often somebody who waits for the end looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What errors call a field of a coordinator's document.
pub(super) const OF_STATE: &str = "reshardCollection";

pub(super) struct Reshard;

impl Coordinator for Reshard {
    fn protocol(&self) -> &'static Protocol {
        &protocols::RESHARD
    }
    fn purpose(&self) -> Purpose {
        Purpose::Copy
    }
    fn also_locks(&self, state: &Document) -> Vec<String> {
        let request = state.get_document("request");
        request.map(|request| timeseries::also_locked(namespace(state), request)).unwrap_or_default()
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let phase = phase_of(ReshardPhase::named(phase), phase)?;
            if phase == ReshardPhase::CheckPreconditions {
                return ddl.check_reshard(state).await;
            }
            if state.get_bool("unchanged").unwrap_or(false) {
                return Ok(());
            }
            let ns = namespace(state).to_string();
            match phase {
                ReshardPhase::CheckPreconditions => Ok(()),
                ReshardPhase::FreezeMigrations => ddl.freeze(&ns, tracked_uuid(state)).await,
                ReshardPhase::Initialize => ddl.initialize_reshard(state).await,
                ReshardPhase::Clone => {
                    ddl.unless_aborted(state, ddl.clone_everything(state)).await.map_err(tell_anew)
                }
                ReshardPhase::BlockWrites => {
                    ddl.unless_aborted(state, ddl.block_and_drain(state)).await.map_err(tell_anew)
                }
                ReshardPhase::Commit => ddl.commit_reshard(state).await,
                ReshardPhase::SwitchCollections => ddl.switch_everywhere(state).await,
                ReshardPhase::UnblockCrud => {
                    ddl.block_everywhere(&ns, BlockType::Unblock, &reason(state)).await
                }
                ReshardPhase::Clean => ddl.clean_after_reshard(state).await,
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.show_state(state, "aborting").await?;
            ddl.give_up(state).await
        })
    }
}

/// What users want of a resharding that runs.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    abort: bool,
    /// Writes may be blocked now, whatever is left to copy.
    commit: bool,
}

/// The wishes for the reshardings of this shard's databases, by the UUID of the copy.
#[derive(Default)]
pub(super) struct Wishes(Mutex<BTreeMap<[u8; 16], watch::Sender<Wish>>>);

impl Wishes {
    fn of(&self, uuid: [u8; 16]) -> watch::Receiver<Wish> {
        self.0.lock().entry(uuid).or_default().subscribe()
    }
    fn note(&self, uuid: [u8; 16], f: impl FnOnce(&mut Wish)) {
        self.0.lock().entry(uuid).or_default().send_modify(f);
    }
    fn forget(&self, uuid: [u8; 16]) {
        self.0.lock().remove(&uuid);
    }
}

fn uuid_in(state: &Document, member: &str) -> Result<[u8; 16]> {
    required(state, member, Value::as_uuid)
}
/// The old collection's UUID where the catalog has it: only then it has migrations.
fn tracked_uuid(state: &Document) -> Option<[u8; 16]> {
    let tracked = state.get_bool("tracked").unwrap_or(false);
    state.get("oldUUID").filter(|_| tracked).and_then(Value::as_uuid)
}
fn reason(state: &Document) -> Document {
    doc! { "command": "reshardCollection", "ns": namespace(state) }
}
fn provenance(state: &Document) -> &str {
    state.get_str("provenance").unwrap_or("reshardCollection")
}
pub(super) fn names(state: &Document, member: &str) -> Vec<String> {
    state.get_array(member).into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string)).collect()
}
/// Shards that will own chunks.
fn recipients(state: &Document) -> Vec<String> {
    let owners: BTreeSet<String> = resharding::documents(state, "chunks")
        .iter()
        .filter_map(|c| c.get_str("shard").map(str::to_string))
        .collect();
    owners.into_iter().collect()
}
/// A participant that has restarted or was deposed in the middle of the copy knows nothing of it: the copy begins anew, or all of it does by
/// the router that asked for it.
fn tell_anew(e: Error) -> Error {
    match e.code {
        codes::NO_SUCH_RESHARD_COLLECTION => err!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "{}", e.message),
        _ => e,
    }
}
/// What a message says of which operation it is.
pub(super) fn operation_of(state: &Document) -> Result<Resharding> {
    let id = |member| messages::read(state, OF_STATE, member);
    Ok(Resharding {
        ns: namespace(state).to_string(),
        temporary: messages::read(state, OF_STATE, "tempNs")?,
        id: id("reshardingUUID")?,
        old: id("oldUUID")?,
        new: id("newUUID")?,
        tracked: messages::read(state, OF_STATE, "tracked")?,
    })
}
fn to_come(state: &Document) -> Result<Distribution> {
    Ok(Distribution {
        key: messages::read(state, OF_STATE, "key")?,
        chunks: messages::read(state, OF_STATE, "chunks")?,
        donors: names(state, "donors"),
    })
}
fn zones_to_come(state: &Document) -> Result<Option<Vec<ZoneToCome>>> {
    messages::read(state, OF_STATE, "zones")
}

impl Ddl {
    /// Runs `_shardsvrReshardCollection`.
    ///
    /// # Errors
    /// Those of [`Ddl::check_reshard`]; ReshardCollectionInProgress (338), ReshardCollectionAborted (341),
    /// ReshardingCriticalSectionTimeout (342).
    pub(super) async fn reshard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let body = request.body.to_document();
        let provenance = body.get_str("provenance").unwrap_or("reshardCollection").to_string();
        let kept = body.into_iter().skip(1).filter(|(name, value)| {
            let own = name == "collation" || !node::generic::is_generic(name);
            own && name != "provenance" && name != "databaseVersion" && !value.is_null()
        });
        let (ns, kept) = self.on_buckets(ns, kept.collect())?;
        let fields = doc! { "provenance": provenance, "request": kept };
        self.coordinate(op, &Reshard, &ns, fields).await?;
        Ok(Document::new())
    }

    /// Runs `work` unless an abort is wanted first.
    async fn unless_aborted(&self, state: &Document, work: impl Future<Output = Result<()>>) -> Result<()> {
        let mut wish = self.wishes.of(uuid_in(state, "newUUID")?);
        tokio::select! {
            biased;
            _ = wish.wait_for(|w| w.abort) => {
                bail!(RESHARD_COLLECTION_ABORTED, "the operation on {} was aborted by a user", namespace(state))
            }
            done = work => done,
        }
    }

    /// Finds who owns what now, chooses who will, and has the config server note the operation.
    async fn initialize_reshard(&self, state: &mut Document) -> Result<()> {
        self.choose_donors(state, tracked_uuid(state)).await?;
        let Planned { chunks, zones, documents, bytes } = self.plan_distribution(state).await?;
        messages::set(state, "chunks", &chunks);
        if let Some(zones) = zones {
            state.insert("zones", zones);
        }
        let begin = ReshardingBegin {
            of: operation_of(state)?,
            to_come: to_come(state)?,
            provenance: provenance(state).to_string(),
            recipients: recipients(state),
            documents,
            bytes,
            zones: zones_to_come(state)?,
        };
        self.config(begin.to_document()).await?;
        self.progress(state)?.enter("preparing-to-donate");
        add(&self.figures(state).started, 1);
        let details = doc! { "key": state.get("key").cloned(), "provenance": provenance(state) };
        self.log_change("reshardCollection.start", namespace(state), details).await;
        Ok(())
    }

    /// Shards that get the copy: owners, and this one, which has every collection of its databases.
    fn holders(&self, state: &Document) -> Result<Vec<String>> {
        let mut all: BTreeSet<String> = recipients(state).into_iter().collect();
        all.insert(self.shard()?);
        Ok(all.into_iter().collect())
    }

    async fn clone_everything(&self, state: &Document) -> Result<()> {
        let (of, recipients) = (operation_of(state)?, recipients(state));
        let provenance = provenance(state).to_string();
        let donate =
            ReshardDonate { of: of.clone(), to_come: to_come(state)?, provenance: provenance.clone() };
        let replies = self.on_shards(&donate.to_come.donors, "admin", donate.to_document()).await?;
        let sum = |name: &str| replies.iter().filter_map(|(_, r)| r.get_i64(name)).sum::<i64>();
        let (documents, bytes, n) = (sum("documents"), sum("bytes"), recipients.len().max(1) as i64);
        let from = replies.iter().filter_map(|(_, r)| r.get("minFetchTimestamp")?.as_timestamp()).max();
        let Some((_, definition)) = replies.into_iter().next() else {
            bail!(INTERNAL_ERROR, "there is no donor")
        };
        let options = definition.get_document("options").cloned().unwrap_or_default();
        let indexes = super::reshard_plan::indexes_of_copy(
            state,
            &options,
            &resharding::documents(&definition, "indexes"),
            documents,
        )?;
        let prepare = ReshardPrepare {
            of: of.clone(),
            to_come: donate.to_come,
            options,
            indexes,
            provenance,
            documents: documents / n,
            bytes: bytes / n,
            clone_timestamp: from,
        };
        self.on_shards(&self.holders(state)?, "admin", prepare.to_document()).await?;
        self.show(state, "cloning", from).await?;
        self.role.node.failpoints.pause_while_set("reshardingPauseCoordinatorInCloning").await;
        self.on_shards(&recipients, "admin", ReshardClone { of }.to_document()).await?;
        self.show_state(state, "applying").await?;
        self.catch_up(state, &recipients).await
    }

    /// Lets the recipients follow until little is left, or a user wants no more of it.
    async fn catch_up(&self, state: &Document, recipients: &[String]) -> Result<()> {
        let wish = self.wishes.of(uuid_in(state, "newUUID")?);
        let message = ReshardCatchUp { of: operation_of(state)? }.to_document();
        let mut round = 0;
        loop {
            let replies = self.on_shards(recipients, "admin", message.clone()).await?;
            let most = replies.iter().filter_map(|(_, r)| r.get_i64("size")).max().unwrap_or(0);
            round += 1;
            let level = most <= LEVEL_BYTES_MAX || round >= ROUNDS_MAX;
            let held = self.role.node.failpoints.should("reshardingPauseCoordinatorBeforeBlockingWrites");
            if wish.borrow().commit || (level && !held) {
                return Ok(());
            }
            if held {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    async fn block_and_drain(&self, state: &Document) -> Result<()> {
        self.show_state(state, "blocking-writes").await?;
        let limit = self.role.parameters.int("reshardingCriticalSectionTimeoutMillis").max(0) as u64;
        let drained = async {
            self.block_everywhere(namespace(state), BlockType::Writes, &reason(state)).await?;
            let of = operation_of(state)?;
            let confirm = ReshardConfirm { of: of.clone() }.to_document();
            self.on_shards(&names(state, "donors"), "admin", confirm).await?;
            self.on_shards(&recipients(state), "admin", ReshardDrain { of }.to_document()).await
        };
        match tokio::time::timeout(Duration::from_millis(limit), drained).await {
            Ok(done) => done.map(drop),
            Err(_) => bail!(
                RESHARDING_CRITICAL_SECTION_TIMEOUT,
                "writes to {} were not blocked, or recipients have not taken what was left, within {limit} ms",
                namespace(state)
            ),
        }
    }

    async fn commit_reshard(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state);
        self.progress(state)?.enter("committing");
        self.block_everywhere(ns, BlockType::ReadsAndWrites, &reason(state)).await?;
        // The catalog knows that of a tracked collection.
        let collation = match tracked_uuid(state) {
            Some(_) => None,
            None => self.role.node.namespaces.slot(ns).collation().document().cloned(),
        };
        let commit = ReshardingCommit {
            of: operation_of(state)?,
            to_come: to_come(state)?,
            unsplittable: messages::read(state, OF_STATE, "unsplittable")?,
            unique: Flag(is_unique(state)),
            zones: zones_to_come(state)?,
            collation,
            series: state.get_document("request").and_then(|r| r.get_document(SERIES)).cloned(),
        };
        self.config(commit.to_document()).await?;
        self.note_resharded(state).await
    }

    /// Tells change streams.
    async fn note_resharded(&self, state: &mut Document) -> Result<()> {
        if provenance(state) != "reshardCollection" {
            return Ok(());
        }
        let ns = namespace(state).to_string();
        let request = state.get_document("request").cloned().unwrap_or_default();
        let mut note = doc! {
            "reshardCollection": ns.as_str(), "reshardUUID": state.get("reshardingUUID").cloned(),
            "shardKey": state.get("key").cloned(), "oldShardKey": state.get("oldKey").cloned(), "unique": false,
            "numInitialChunks": request.get_i64("numInitialChunks").unwrap_or(0),
        };
        if let Some(zones) = request.get_present("zones") {
            note.push("zones", zones.clone());
        }
        let uuid = uuid_in(state, "newUUID")?;
        self.tell_streams(state, &ns, Some(uuid), note).await
    }

    async fn switch_everywhere(&self, state: &Document) -> Result<()> {
        let shards = self.all_shards().await?;
        let switch = ReshardSwitch { of: operation_of(state)? };
        self.on_shards(&shards, "admin", switch.to_document()).await.map(drop)
    }

    async fn clean_after_reshard(&self, state: &Document) -> Result<()> {
        self.end_on_config(state, true).await?;
        // Best effort: who does not hear of it asks when a request brings the new version.
        self.refresh_everywhere(namespace(state)).await?;
        self.wishes.forget(uuid_in(state, "newUUID")?);
        if self.role.resharding.has_ended(uuid_in(state, "newUUID")?) {
            add(&self.figures(state).succeeded, 1);
        }
        let details = doc! { "key": state.get("key").cloned(), "provenance": provenance(state) };
        self.log_change("reshardCollection.end", namespace(state), details).await;
        Ok(())
    }

    /// Ends an operation that is not to go on. Nothing of the copy goes before the config server has said that it is not the
    /// collection already.
    async fn give_up(&self, state: &Document) -> Result<()> {
        let ns = namespace(state);
        // From here no commit that is still under way can succeed. One that has, unknown to the coordinator, counts.
        if self.end_on_config(state, false).await? {
            self.note_resharded(&mut state.clone()).await?;
            self.switch_everywhere(state).await?;
            self.block_everywhere(ns, BlockType::Unblock, &reason(state)).await?;
            self.clean_after_reshard(state).await?;
            return self.note_committed(state).await;
        }
        self.release_everywhere(state).await?;
        let canceled = self.wishes.of(uuid_in(state, "newUUID")?).borrow().abort;
        self.abort_everywhere(state).await?;
        self.thaw(ns, tracked_uuid(state)).await?;
        if self.role.resharding.has_ended(uuid_in(state, "newUUID")?) {
            let figures = self.figures(state);
            add(if canceled { &figures.canceled } else { &figures.failed }, 1);
        }
        Ok(())
    }

    /// What was copied goes.
    async fn abort_everywhere(&self, state: &Document) -> Result<()> {
        let shards = self.all_shards().await?;
        let command = ReshardAbort { of: operation_of(state)? }.to_document();
        self.undo_on_shards(&shards, "admin", command).await?;
        self.wishes.forget(uuid_in(state, "newUUID")?);
        Ok(())
    }

    /// Lets writes go on, on shards that may be busy with a copy nobody wants any more.
    async fn release_everywhere(&self, state: &Document) -> Result<()> {
        let (db, name) = super::split(namespace(state));
        let release = ParticipantBlock {
            name: name.to_string(),
            block: BlockType::Unblock.name().to_string(),
            reason: reason(state),
            copy: Some(uuid_in(state, "newUUID")?),
        };
        let shards = self.all_shards().await?;
        self.on_shards(&shards, db, release.to_document()).await.map(drop)
    }

    /// Has the config server forget the operation; whether it was committed.
    async fn end_on_config(&self, state: &Document, committed: bool) -> Result<bool> {
        let end = ReshardingEnd { of: operation_of(state)?, committed: Flag(committed) };
        Ok(self.config(end.to_document()).await?.get_bool("committed").unwrap_or(false))
    }

    /// Shows in the catalog how far it is.
    async fn show_state(&self, state: &Document, name: &'static str) -> Result<()> {
        self.show(state, name, None).await
    }
    /// The same, with the time since when changes are taken.
    async fn show(&self, state: &Document, name: &'static str, from: Option<Timestamp>) -> Result<()> {
        self.progress(state)?.enter(name);
        let of = operation_of(state)?;
        let set = ReshardingSetState { of, state: name.to_string(), clone_timestamp: from };
        // Not marked as a message of the coordinator: one that an abort has cut off must not keep the next from passing, and late it is for
        // an operation that is known no more.
        self.role.remote.admin(Target::Config, set.with_majority()).await.map(drop)
    }
    /// What `currentOp` says of it on this shard.
    fn progress(&self, state: &Document) -> Result<Arc<Progress>> {
        let of = operation_of(state)?;
        let new =
            || Progress::new(&progress::COORDINATOR, &of, provenance(state), "initializing", Document::new());
        Ok(self.role.resharding.coordinated(of.new, new))
    }
    fn figures(&self, state: &Document) -> &progress::Ended {
        &self.role.resharding.figures.of(provenance(state)).ended
    }

    /// The coordinator's document of a resharding of `ns`.
    fn resharding_of(&self, ns: &str) -> Result<Option<Document>> {
        let id = doc! { "namespace": ns, "operationType": protocols::RESHARD.operation };
        self.role.local.find_one(COORDINATORS, &doc! { "_id": { "$eq": id } })
    }

    /// Runs `_shardsvrAbortReshardCollection`: ends a resharding that has not begun to commit, and waits until it has ended.
    ///
    /// # Errors
    /// NoSuchReshardCollection (339), ReshardCollectionCommitted (340), IllegalOperation (20) for one of another kind.
    pub(super) async fn abort_reshard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let (ns, state) = self.running_for(op, request).await?;
        let uuid = uuid_in(&state, "newUUID")?;
        let before = ["freezeMigrations", "initialize", "clone", "blockWrites", UNDO];
        let committed = || {
            err!(
                RESHARD_COLLECTION_COMMITTED,
                "the operation on {ns} can no longer be aborted: it is committed"
            )
        };
        if !state.get_str("phase").is_some_and(|p| before.contains(&p)) {
            return Err(committed());
        }
        self.wishes.note(uuid, |w| w.abort = true);
        op.interruptible(self.ended(&ns, uuid)).await??;
        self.wishes.forget(uuid);
        let now = self.tracked_uuid(&ns).await?;
        match now == Some(uuid) {
            true => Err(committed()),
            false => Ok(Document::new()),
        }
    }

    /// Runs `_shardsvrCommitReshardCollection`: writes are blocked as soon as everything was copied once.
    ///
    /// # Errors
    /// NoSuchReshardCollection (339); ReshardCollectionAborted (341) when it ended otherwise.
    pub(super) async fn hasten_reshard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let (ns, state) = self.running_for(op, request).await?;
        let uuid = uuid_in(&state, "newUUID")?;
        self.wishes.note(uuid, |w| w.commit = true);
        op.interruptible(self.ended(&ns, uuid)).await??;
        self.wishes.forget(uuid);
        match self.tracked_uuid(&ns).await? == Some(uuid) {
            true => Ok(Document::new()),
            false => bail!(RESHARD_COLLECTION_ABORTED, "the operation on {ns} was aborted"),
        }
    }

    /// Runs `_shardsvrCleanupReshardCollection`: ends what runs as an abort does; what an operation left that is no more goes.
    ///
    /// # Errors
    /// As [`Ddl::abort_reshard`], but for 339.
    pub(super) async fn cleanup_reshard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        match self.abort_reshard(op, request).await {
            Err(e) if e.code == codes::NO_SUCH_RESHARD_COLLECTION => {}
            done => return done,
        }
        let ns = self.documents_of(request.namespace()?);
        let undone = op.interruptible(self.give_up_left(&ns)).await??;
        match undone {
            Some(outcome) => op.interruptible(ended(outcome)).await?.unwrap_or_else(|| Ok(Document::new())),
            None => Ok(Document::new()),
        }
    }

    /// Lets a coordinator give up what an operation on `ns` has left that has lost its own. The config server forgets the operation
    /// first: from there on only the new coordinator's document says what is still to be taken back.
    async fn give_up_left(&self, ns: &str) -> Result<Option<Outcome>> {
        let left =
            async || self.role.remote.find_config("reshardingOperations", doc! { "ns": ns }, None).await;
        let Some(operation) = left().await?.into_iter().next() else { return Ok(None) };
        let member = |name: &str| operation.get(name).cloned().unwrap_or(Value::Null);
        let state = doc! {
            "_id": { "namespace": ns, "operationType": protocols::RESHARD.operation }, "provenance": member("provenance"),
            "reshardingUUID": member("_id"), "tempNs": required_str(&operation, "tempNs")?, "oldUUID": member("ui"),
            "newUUID": member("newUUID"), "key": member("reshardingKey"), "tracked": true,
        };
        let still = async { Ok(left().await?.iter().any(|o| o.get("_id") == operation.get("_id"))) };
        self.undo_anew(&Reshard, state, still).await
    }

    async fn running_for(&self, op: &Operation, request: Request<'_>) -> Result<(String, Document)> {
        let ns = self.documents_of(request.namespace()?);
        self.check_primary(op, request.db).await?;
        let wanted = request.body.get_str("provenance").unwrap_or("reshardCollection");
        let Some(state) = self.resharding_of(&ns)? else {
            bail!(NO_SUCH_RESHARD_COLLECTION, "Could not find an operation of this kind on collection {ns}")
        };
        if provenance(&state) != wanted {
            bail!(ILLEGAL_OPERATION, "the operation that runs on {ns} is a {}", provenance(&state));
        }
        Ok((ns, state))
    }

    /// Waits until this resharding has ended.
    async fn ended(&self, ns: &str, uuid: [u8; 16]) -> Result<()> {
        while self.resharding_of(ns)?.is_some_and(|s| uuid_in(&s, "newUUID") == Ok(uuid)) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Runs what coordinators tell participants of a resharding.
    pub(super) async fn reshard_participant(&self, request: Request<'_>) -> Result<Document> {
        let (role, body) = (&self.role, request.body.to_document());
        let attempt = resharding::attempt_of(&body);
        let receives = |of: &Resharding| role.resharding.recipient(of.new);
        match request.name() {
            ReshardSample::COMMAND => donor::sample(role, ReshardSample::read(&body)?).await,
            ReshardDonate::COMMAND => donor::donate(role, ReshardDonate::read(&body)?, attempt).await,
            ReshardConfirm::COMMAND => donor::confirm(role, &ReshardConfirm::read(&body)?.of).await,
            ReshardPrepare::COMMAND => recipient::prepare(role, ReshardPrepare::read(&body)?, attempt).await,
            ReshardClone::COMMAND => {
                let recipient = receives(&ReshardClone::read(&body)?.of)?;
                role.node.failpoints.pause_while_set("reshardingPauseRecipientBeforeCloning").await;
                recipient.clone_all(role).await
            }
            ReshardCatchUp::COMMAND => receives(&ReshardCatchUp::read(&body)?.of)?.catch_up(role).await,
            ReshardDrain::COMMAND => receives(&ReshardDrain::read(&body)?.of)?.drain(role).await,
            ReshardSwitch::COMMAND => recipient::switch(role, &ReshardSwitch::read(&body)?.of).await,
            _ => recipient::abort(role, &ReshardAbort::read(&body)?.of).await,
        }
    }

    /// What is being received for a resharding ends before the message that begins it anew, or gives it up, is let in. One of
    /// an earlier run than that which receives ends nothing.
    pub(super) fn make_way(&self, request: &Request<'_>) {
        let copy = match request.name() {
            ReshardPrepare::COMMAND => ReshardPrepare::parse(request.body).ok().map(|m| m.of.new),
            ReshardAbort::COMMAND => ReshardAbort::parse(request.body).ok().map(|m| m.of.new),
            ParticipantBlock::COMMAND => ParticipantBlock::parse(request.body).ok().and_then(|m| m.copy),
            _ => None,
        };
        if let Some(uuid) = copy.filter(|_| !self.fences.is_late(request.body)) {
            self.role.resharding.cancel(uuid);
        }
    }
}
