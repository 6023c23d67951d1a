//! The donor's side: what it hands out, and whether the collection is still what it was.

use super::progress::{self, Progress, seconds};
use super::{Part, table_of, unknown};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::resharding::{ReshardDonate, ReshardFetch, ReshardSample, Resharding};
use crate::routing::{Routing, RoutingTable};
use crate::shard::ShardRole;
use crate::shard::ddl::fence::Run;
use crate::shard::migration::sessions::SessionSource;
use crate::shard::migration::source::{Selection, Source};
use document::{Doc, DocBuf, Document, Result, bail, doc, err};
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::{CollectionSnapshot, CollectionView, RecordId};

/// More sampled keys than this are not asked for.
const SAMPLES_MAX: usize = 100_000;
/// A collection of at most so many documents is sampled whole.
const WHOLE_MAX: usize = 20_000;

/// What is handed out to one recipient.
struct Handout {
    source: tokio::sync::Mutex<Source>,
    sessions: tokio::sync::Mutex<SessionSource>,
}

/// A collection that is given away under a resharding.
pub struct Donor {
    ns: String,
    pub(super) progress: Progress,
    /// What its state says besides its name.
    details: Document,
    attempt: Option<Run>,
    handouts: BTreeMap<String, Handout>,
    /// As they were told to the recipients.
    options: Document,
    indexes: Vec<Document>,
    documents: i64,
    bytes: i64,
}

fn snapshot_of(role: &ShardRole, ns: &str) -> Result<CollectionSnapshot> {
    let slot = role.node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    let found = state.collection.as_ref().map(|c| c.snapshot());
    found.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}"))
}

/// The placement of the incarnation `uuid` as the config server has it; `None` for a collection that is not tracked.
///
/// # Errors
/// ConflictingOperationInProgress (117) for another incarnation.
pub(super) async fn placement_now(
    role: &ShardRole,
    ns: &str,
    uuid: [u8; 16],
    tracked: bool,
) -> Result<Option<Arc<RoutingTable>>> {
    match (role.refresh_collection(ns).await?, tracked) {
        (Routing::Unsharded, false) => Ok(None),
        (Routing::Sharded(table), true) if table.uuid == uuid => Ok(Some(table)),
        _ => bail!(
            CONFLICTING_OPERATION_IN_PROGRESS,
            "the placement of {ns} changed since its resharding began"
        ),
    }
}

fn definition(snapshot: &CollectionSnapshot) -> (Document, Vec<Document>) {
    let indexes = snapshot.indexes().iter().map(|i| node::ddl::indexes::complete(&i.info().spec)).collect();
    (snapshot.meta().options.clone(), indexes)
}

/// `_shardsvrReshardDonate`: takes the snapshot from which the recipients copy; answers how the collection is defined.
///
/// # Errors
/// NamespaceNotFound (26), ConflictingOperationInProgress (117).
pub(crate) async fn donate(
    role: &Arc<ShardRole>,
    ReshardDonate { of, to_come, provenance }: ReshardDonate,
    attempt: Option<Run>,
) -> Result<Document> {
    let own = role.require_identity()?.name.to_string();
    let ns = of.ns.as_str();
    let now = placement_now(role, ns, of.old, of.tracked.0).await?;
    let key = to_come.key.clone();
    let to_come = Arc::new(table_of(ns, &ShardKeyPattern::parse(&to_come.key)?, &to_come.chunks)?);
    // What happens from here on is among the changes.
    let from = role.node.cluster_time();
    let snapshot = snapshot_of(role, ns)?;
    if snapshot.meta().uuid != of.old {
        bail!(CONFLICTING_OPERATION_IN_PROGRESS, "collection {ns} is another than its resharding began with");
    }
    let (options, indexes) = definition(&snapshot);
    let mut handouts = BTreeMap::new();
    for recipient in to_come.shards() {
        let part = Part::new(now.clone(), &own, to_come.clone(), recipient);
        let source = Source::new(Selection::Part(part), snapshot.clone());
        let sessions = SessionSource::new(&role.node, ns, None);
        let handout =
            Handout { source: tokio::sync::Mutex::new(source), sessions: tokio::sync::Mutex::new(sessions) };
        handouts.insert(recipient.to_string(), handout);
    }
    let recipients: Vec<String> = handouts.keys().cloned().collect();
    let more = doc! { "reshardingKey": key, "recipientShards": recipients };
    let (documents, bytes) = (snapshot.len() as i64, snapshot.data_bytes() as i64);
    let donor = Donor {
        ns: ns.to_string(),
        progress: Progress::new(&progress::DONOR, &of, &provenance, "donating-initial-data", more),
        details: doc! { "minFetchTimestamp": from, "documentsToClone": documents, "bytesToClone": bytes },
        attempt,
        handouts,
        options: options.clone(),
        indexes: indexes.clone(),
        documents,
        bytes,
    };
    donor.progress.write(role, donor.details.clone()).await?;
    let reply = doc! {
        "options": options, "indexes": indexes, "documents": donor.documents, "bytes": donor.bytes,
        "minFetchTimestamp": from,
    };
    role.resharding.donate(of.new, donor);
    Ok(reply)
}

/// `_shardsvrReshardFetch`: the next part of what a recipient has not got; `what` is `clone`, `changes` or `sessions`.
///
/// # Errors
/// NoSuchReshardCollection (339), also for a recipient of another attempt; ShardKeyNotFound (61), NamespaceNotFound (26) when the
/// collection is gone.
pub(crate) async fn fetch(role: &Arc<ShardRole>, asked: ReshardFetch) -> Result<DocBuf> {
    let donor = role.resharding.donor(asked.new)?;
    if donor.attempt != asked.attempt.as_ref().and_then(Run::from_document) {
        return Err(unknown());
    }
    let Some(handout) = donor.handouts.get(&asked.recipient) else {
        bail!(ILLEGAL_OPERATION, "{} is no recipient of the resharding of {}", asked.recipient, donor.ns)
    };
    match asked.what.as_str() {
        "clone" => {
            let mut source = handout.source.lock().await;
            let batch = source.clone_batch().await?;
            source.check()?;
            Ok(batch)
        }
        "changes" => {
            if donor.progress.enter("donating-oplog-entries") {
                donor.progress.rewrite(role, donor.details.clone()).await?;
            }
            let mut source = handout.source.lock().await;
            let part = source.changes(|| snapshot_of(role, &donor.ns)).await?;
            source.check()?;
            Ok(part)
        }
        _ => handout.sessions.lock().await.next(&role.node).await,
    }
}

/// `_shardsvrReshardConfirm`: whether the collection is still defined as when it was given away; writes to it wait.
///
/// # Errors
/// Interrupted (11601) when its indexes or options are others, NoSuchReshardCollection (339).
pub(crate) async fn confirm(role: &ShardRole, of: &Resharding) -> Result<Document> {
    let donor = role.resharding.donor(of.new)?;
    let now = definition(&snapshot_of(role, &donor.ns)?);
    if now != (donor.options.clone(), donor.indexes.clone()) {
        bail!(INTERRUPTED, "indexes or options of {} changed during its resharding", donor.ns);
    }
    donor.progress.enter("blocking-writes");
    donor.progress.rewrite(role, donor.details.clone()).await?;
    Ok(Document::new())
}

impl Donor {
    pub(super) fn current(&self) -> Document {
        let mut d = self.progress.row();
        d.push("approxDocumentsToCopy", self.documents);
        d.push("approxBytesToCopy", self.bytes);
        d.push("totalCriticalSectionTimeElapsedSecs", seconds(self.progress.time_in("blocking-writes")));
        d
    }
}

/// `_shardsvrReshardSample`: keys of documents that this shard owns, spread evenly over the collection, as `{keys, documents,
/// bytes, whole}`; `whole` says that these are the keys of all.
///
/// # Errors
/// NamespaceNotFound (26), ShardKeyNotFound (61) for a document without a usable key.
pub(crate) async fn sample(role: &Arc<ShardRole>, asked: ReshardSample) -> Result<Document> {
    let own = role.require_identity()?.name.to_string();
    let now = placement_now(role, &asked.ns, asked.old, asked.tracked.0).await?;
    let key = ShardKeyPattern::parse(&asked.key)?;
    let wanted = (asked.samples.max(1) as usize).min(SAMPLES_MAX);
    let snapshot = snapshot_of(role, &asked.ns)?;
    let whole = snapshot.len() <= WHOLE_MAX;
    let stride = if whole { 1 } else { (snapshot.next_record() / wanted as u64).max(1) };
    let mut keys = Vec::new();
    let mut next = Some(RecordId::MIN);
    while let Some(from) = next {
        next = sample_slice(&snapshot, from, stride, |doc| {
            if super::owned(now.as_deref(), &own, doc) {
                keys.push(key.key_document_of(doc)?);
            }
            Ok(())
        })?;
        tokio::task::yield_now().await;
    }
    Ok(doc! {
        "keys": keys, "documents": snapshot.len() as i64, "bytes": snapshot.data_bytes() as i64, "whole": whole,
    })
}

/// Visits some hundreds of records from `from` on, `stride` apart; answers where to go on.
fn sample_slice(
    view: &CollectionSnapshot,
    mut from: RecordId,
    stride: u64,
    mut f: impl FnMut(Doc<'_>) -> Result<()>,
) -> Result<Option<RecordId>> {
    let mut cursor = view.records();
    for _ in 0..512 {
        let Some((record, doc)) = cursor.seek(from) else { return Ok(None) };
        f(doc)?;
        match record.checked_add(stride) {
            Some(next) => from = next,
            None => return Ok(None),
        }
    }
    Ok(Some(from))
}
