//! The recipient's side: fetches from every donor and applies to the temporary collection.
//!
//! Documents of different donors may have the same `_id`, or the same value in a unique index, for a while: one donor's
//! snapshot is older than another's, and a document that moved from one to the other is then in both. So a change is applied
//! only to what came from the same donor, which the placement in force tells of any document; and what collides with
//! another's is put aside and tried again when every donor has handed out another difference. What is aside when writes wait
//! and all differences are out collides for good, and the resharding fails.

use super::owned;
use super::progress::{self, Progress, seconds};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::resharding::{ReshardFetch, ReshardPrepare, Resharding};
use crate::remote::Target;
use crate::routing::RoutingTable;
use crate::shard::ShardRole;
use crate::shard::ddl::fence::Run;
use crate::shard::migration::range::SLICE_TIME_MAX;
use crate::shard::migration::sessions;
use crate::shard::statistics::add;
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, bail, codes, doc, key_string};
use node::ddl::rename::DropTarget;
use node::{Operation, Origin, WriteUnit};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use storage::{CollectionMeta, IndexSpec, RecordId};
use tokio::sync::watch;

/// How long a shard that gives up waits for what it is writing.
const END_WAIT: Duration = Duration::from_secs(60);

/// How many differences are taken after writes were blocked.
const DRAIN_ROUNDS_MAX: usize = 100;

/// A collection that arrives here under a temporary name.
pub struct Recipient {
    ns: String,
    temporary: String,
    /// UUID of the copy.
    uuid: [u8; 16],
    donors: Vec<String>,
    own: String,
    pub(super) progress: Progress,
    /// About what will come.
    documents_to_copy: i64,
    bytes_to_copy: i64,
    attempt: Option<Run>,
    /// The placement in force, which tells where a document came from; none when there is one donor.
    now: Option<Arc<RoutingTable>>,
    /// What collides with another donor's, by donor and `_id`.
    aside: Mutex<BTreeMap<(usize, Vec<u8>), DocBuf>>,
    cancelled: watch::Sender<bool>,
    /// Held while something of it is being written.
    writing: tokio::sync::Mutex<()>,
    documents: AtomicI64,
    bytes: AtomicI64,
    fetched: AtomicI64,
    changes: AtomicI64,
    deletes: AtomicI64,
}

/// `_shardsvrReshardPrepare`: makes the temporary collection, empty, with its indexes. One that is there was left by a try that
/// did not end, and goes.
///
/// # Errors
/// Those of reading the placement; ConflictingOperationInProgress (117).
pub(crate) async fn prepare(
    role: &Arc<ShardRole>,
    asked: ReshardPrepare,
    attempt: Option<Run>,
) -> Result<Document> {
    let ReshardPrepare { of, to_come, options, indexes, provenance, documents, bytes, clone_timestamp } =
        asked;
    end(role, of.new).await?;
    let more = doc! {
        "reshardingKey": to_come.key, "donorShards": to_come.donors.clone(), "cloneTimestamp": clone_timestamp,
        "approxDocumentsToCopy": documents, "approxBytesToCopy": bytes,
    };
    let now = super::donor::placement_now(role, &of.ns, of.old, of.tracked.0).await?;
    let recipient = Recipient {
        progress: Progress::new(&progress::RECIPIENT, &of, &provenance, "creating-collection", more),
        documents_to_copy: documents,
        bytes_to_copy: bytes,
        ns: of.ns,
        temporary: of.temporary,
        uuid: of.new,
        donors: to_come.donors,
        own: role.require_identity()?.name.to_string(),
        attempt,
        now,
        aside: Mutex::default(),
        cancelled: watch::Sender::new(false),
        writing: tokio::sync::Mutex::default(),
        documents: AtomicI64::new(0),
        bytes: AtomicI64::new(0),
        fetched: AtomicI64::new(0),
        changes: AtomicI64::new(0),
        deletes: AtomicI64::new(0),
    };
    recipient.progress.write(role, Document::new()).await?;
    let op = Operation::internal_marked(true);
    node::ddl::collections::drop_collection(&role.node, &op, &recipient.temporary, true).await?;
    recipient.create(role, options, &indexes).await?;
    role.resharding.receive(recipient.uuid, Arc::new(recipient));
    Ok(Document::new())
}

/// Ends what is received for a resharding, and waits until nothing is written for it any more.
///
/// # Errors
/// ExceededTimeLimit (262).
pub async fn end(role: &ShardRole, uuid: [u8; 16]) -> Result<()> {
    if let Ok(recipient) = role.resharding.recipient(uuid) {
        recipient.cancel();
        if tokio::time::timeout(END_WAIT, recipient.writing.lock()).await.is_err() {
            bail!(EXCEEDED_TIME_LIMIT, "the copy of {} does not end", recipient.ns);
        }
    }
    role.resharding.forget_recipient(uuid);
    Ok(())
}

impl Recipient {
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }
    pub(super) fn current(&self) -> Document {
        let mut d = self.progress.row();
        let read = |n: &AtomicI64| n.load(Ordering::Relaxed);
        d.push("approxDocumentsToCopy", self.documents_to_copy);
        d.push("documentsCopied", read(&self.documents));
        d.push("approxBytesToCopy", self.bytes_to_copy);
        d.push("bytesCopied", read(&self.bytes));
        d.push("totalCopyTimeElapsedSecs", seconds(self.progress.time_in("cloning")));
        d.push("oplogEntriesFetched", read(&self.fetched));
        d.push("oplogEntriesApplied", read(&self.changes));
        d.push("insertsApplied", read(&self.changes) - read(&self.deletes));
        d.push("deletesApplied", read(&self.deletes));
        d.push("totalApplyTimeElapsedSecs", seconds(self.progress.time_in("applying")));
        d.push("remainingOperationTimeEstimatedSecs", self.seconds_left());
        d
    }
    /// How long copying and applying will take at the pace that they have had; -1 while nothing tells.
    fn seconds_left(&self) -> i64 {
        let read = |n: &AtomicI64| n.load(Ordering::Relaxed) as f64;
        let at_pace = |state: &str, done: f64, left: f64| {
            (done > 0.0).then(|| self.progress.time_in(state).as_secs_f64() * left.max(0.0) / done)
        };
        let left = match self.progress.state() {
            "creating-collection" => None,
            "cloning" => at_pace("cloning", read(&self.bytes), self.bytes_to_copy as f64 - read(&self.bytes)),
            _ => at_pace("applying", read(&self.changes), read(&self.fetched) - read(&self.changes))
                .or(Some(0.0)),
        };
        left.map_or(-1, |seconds| seconds.ceil() as i64)
    }

    async fn enter(&self, role: &ShardRole, state: &'static str) -> Result<()> {
        if !self.progress.enter(state) {
            return Ok(());
        }
        let read = |n: &AtomicI64| n.load(Ordering::Relaxed);
        let done =
            doc! { "totalNumDocuments": read(&self.documents), "totalDocumentSize": read(&self.bytes) };
        let copied = !matches!(state, "creating-collection" | "cloning");
        self.progress.rewrite(role, if copied { done } else { Document::new() }).await
    }

    async fn create(&self, role: &ShardRole, options: Document, indexes: &[Document]) -> Result<()> {
        let op = Operation::internal_marked(true);
        let slot = role.node.namespaces.slot(&self.temporary);
        let specs = indexes.iter().filter(|s| s.get_str("name") != Some("_id_"));
        let specs = specs.map(|spec| IndexSpec::parse(spec, &node::open::partial_predicate));
        let specs = specs.collect::<Result<Vec<IndexSpec>>>()?;
        let meta = CollectionMeta::with_options(self.temporary.clone(), self.uuid, options);
        role.node
            .write(&op, &slot, |unit| {
                unit.create_collection(meta, true);
                for spec in &specs {
                    unit.create_index_from(spec.document().clone())?;
                }
                Ok(())
            })
            .await
            .map(drop)
    }

    /// Runs `work` unless the resharding is cancelled first; one thing at a time.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let _writing = self.writing.lock().await;
        let mut cancelled = self.cancelled.subscribe();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|cancelled| *cancelled) => {
                bail!(RESHARD_COLLECTION_ABORTED, "the resharding of {} was aborted", self.ns)
            }
            done = work => done,
        }
    }

    /// `_shardsvrReshardClone`: all documents of all donors.
    ///
    /// # Errors
    /// ReshardCollectionAborted (341); the donors' errors.
    pub async fn clone_all(&self, role: &Arc<ShardRole>) -> Result<Document> {
        self.unless_cancelled(async {
            self.enter(role, "cloning").await?;
            let all = (0..self.donors.len()).map(|donor| self.clone_from(role, donor));
            futures::future::try_join_all(all).await?;
            self.enter(role, "applying").await?;
            self.take_sessions(role).await?;
            Ok(self.progress(0))
        })
        .await
    }
    /// `_shardsvrReshardCatchUp`: one difference of each donor; answers its bytes.
    ///
    /// # Errors
    /// As [`Recipient::clone_all`].
    pub async fn catch_up(&self, role: &Arc<ShardRole>) -> Result<Document> {
        self.unless_cancelled(async {
            let bytes = self.differences(role).await?;
            self.take_sessions(role).await?;
            Ok(self.progress(bytes))
        })
        .await
    }
    /// `_shardsvrReshardDrain`: everything, writes waiting on the donors; answers when it is durable.
    ///
    /// # Errors
    /// DuplicateKey (11000) when documents of two donors collide for good; ReshardingCriticalSectionTimeout (342) when changes do
    /// not end.
    pub async fn drain(&self, role: &Arc<ShardRole>) -> Result<Document> {
        self.unless_cancelled(async {
            // Who writes to a donor past its versions is waited for until there is a pause.
            let mut rounds = 0;
            while self.differences(role).await? > 0 {
                rounds += 1;
                if rounds == DRAIN_ROUNDS_MAX {
                    bail!(
                        RESHARDING_CRITICAL_SECTION_TIMEOUT,
                        "{} changes on its donors though writes are blocked",
                        self.ns
                    );
                }
            }
            self.take_sessions(role).await?;
            if let Some(doc) = self.aside.lock().values().next() {
                let id = doc.doc().get("_id").map_or(Value::Null, |v| v.to_value());
                bail!(
                    DUPLICATE_KEY,
                    "two documents of {} that would come to one shard have the same _id or the same value in a unique index, such as that with _id {}",
                    self.ns,
                    document::shell::value(&id)
                );
            }
            role.node.wait_all_committed().await?;
            self.enter(role, "strict-consistency").await?;
            Ok(self.progress(0))
        })
        .await
    }
    fn progress(&self, size: i64) -> Document {
        let read = |n: &AtomicI64| n.load(Ordering::Relaxed);
        doc! { "size": size, "documents": read(&self.documents), "bytes": read(&self.bytes) }
    }

    async fn ask(&self, role: &Arc<ShardRole>, donor: usize, what: &str) -> Result<DocBuf> {
        let fetch = ReshardFetch {
            new: self.uuid,
            recipient: self.own.clone(),
            what: what.to_string(),
            attempt: self.attempt.map(Run::to_document),
        };
        match self.donors[donor] == self.own {
            true => super::donor::fetch(role, fetch).await,
            false => {
                let command = fetch.to_document().to_doc_buf();
                role.remote.run(Target::Shard(&self.donors[donor]), "admin", command).await
            }
        }
    }

    async fn clone_from(&self, role: &Arc<ShardRole>, donor: usize) -> Result<()> {
        let mut batch = self.ask_for_documents(role, donor).await?;
        while list(&batch, "objects").next().is_some() {
            // The next batch travels while this one is written.
            let (inserted, next) =
                tokio::join!(self.insert(role, donor, &batch), self.ask_for_documents(role, donor));
            inserted?;
            batch = next?;
        }
        Ok(())
    }
    async fn ask_for_documents(&self, role: &Arc<ShardRole>, donor: usize) -> Result<DocBuf> {
        let begun = Instant::now();
        let batch = self.ask(role, donor, "clone").await?;
        let latencies = &self.progress.figures(role).latencies;
        add(&latencies.clone_wait_millis, begun.elapsed().as_millis() as i64);
        add(&latencies.clone_batches, 1);
        Ok(batch)
    }
    async fn insert(&self, role: &ShardRole, donor: usize, batch: &DocBuf) -> Result<()> {
        let begun = Instant::now();
        let docs: Vec<Doc<'_>> = list(batch, "objects").collect();
        self.write_each(role, docs.len(), |unit, i| self.reload(unit, donor, docs[i])).await?;
        let (n, bytes) = (docs.len() as i64, docs.iter().map(|d| d.bytes().len() as i64).sum());
        let figures = self.progress.figures(role);
        for (own, all, by) in
            [(&self.documents, &figures.active.documents, n), (&self.bytes, &figures.active.bytes, bytes)]
        {
            add(own, by);
            add(all, by);
        }
        add(&figures.latencies.insert_millis, begun.elapsed().as_millis() as i64);
        add(&figures.latencies.inserts, 1);
        Ok(())
    }

    /// One difference of each donor, then what was put aside; answers the bytes.
    async fn differences(&self, role: &Arc<ShardRole>) -> Result<i64> {
        let all = (0..self.donors.len()).map(|donor| self.difference(role, donor));
        let bytes: i64 = futures::future::try_join_all(all).await?.into_iter().sum();
        self.write_aside(role).await?;
        Ok(bytes)
    }
    async fn difference(&self, role: &Arc<ShardRole>, donor: usize) -> Result<i64> {
        let mut total = 0;
        loop {
            let begun = Instant::now();
            let part = self.ask(role, donor, "changes").await?;
            let latencies = &self.progress.figures(role).latencies;
            add(&latencies.fetch_millis, begun.elapsed().as_millis() as i64);
            add(&latencies.fetches, 1);
            let size = part.doc().get_i64("size").unwrap_or(0);
            if size > 0 {
                total += size;
                self.apply(role, donor, &part).await?;
            }
            if part.doc().get_bool("more") != Some(true) {
                return Ok(total);
            }
        }
    }
    async fn apply(&self, role: &ShardRole, donor: usize, part: &DocBuf) -> Result<()> {
        let deleted: Vec<Doc<'_>> = list(part, "deleted").collect();
        let reload: Vec<Doc<'_>> = list(part, "reload").collect();
        let n = deleted.len() + reload.len();
        let (begun, figures) = (Instant::now(), self.progress.figures(role));
        add(&self.fetched, n as i64);
        add(&figures.active.fetched, n as i64);
        self.write_each(role, n, |unit, i| match deleted.get(i) {
            Some(id) => self.remove(unit, donor, *id),
            None => self.reload(unit, donor, reload[i - deleted.len()]),
        })
        .await?;
        add(&self.changes, n as i64);
        add(&self.deletes, deleted.len() as i64);
        add(&figures.active.applied, n as i64);
        add(&figures.active.upserts, reload.len() as i64);
        add(&figures.active.deletes, deleted.len() as i64);
        add(&figures.latencies.apply_millis, begun.elapsed().as_millis() as i64);
        add(&figures.latencies.applies, 1);
        Ok(())
    }
    async fn write_aside(&self, role: &ShardRole) -> Result<()> {
        let aside: Vec<((usize, Vec<u8>), DocBuf)> =
            std::mem::take(&mut *self.aside.lock()).into_iter().collect();
        self.write_each(role, aside.len(), |unit, i| self.reload(unit, aside[i].0.0, aside[i].1.doc())).await
    }

    /// Writes `n` things, some at a time under the latch.
    async fn write_each(
        &self,
        role: &ShardRole,
        n: usize,
        f: impl Fn(&mut WriteUnit<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        let (op, slot) = (Operation::internal(), role.node.namespaces.slot(&self.temporary));
        let mut next = 0;
        while next < n {
            role.node
                .write(&op, &slot, |unit| {
                    if unit.existing()?.uuid() != self.uuid {
                        bail!(RESHARD_COLLECTION_ABORTED, "the copy of {} is gone", self.ns);
                    }
                    let started = Instant::now();
                    while next < n && started.elapsed() < SLICE_TIME_MAX {
                        f(unit, next)?;
                        next += 1;
                    }
                    Ok(())
                })
                .await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The donor no longer has the document.
    fn remove(&self, unit: &mut WriteUnit<'_>, donor: usize, id: Doc<'_>) -> Result<()> {
        self.aside.lock().remove(&(donor, id_key(id)));
        if let Some((record, true)) = self.find(unit, donor, id)? {
            unit.delete(record, Origin::MIGRATION)?;
        }
        Ok(())
    }
    /// The donor has the document as it is here.
    fn reload(&self, unit: &mut WriteUnit<'_>, donor: usize, doc: Doc<'_>) -> Result<()> {
        let key = (donor, id_key(doc));
        self.aside.lock().remove(&key);
        let written = match self.find(unit, donor, doc)? {
            Some((record, true)) => match unit.replace(record, doc, Origin::MIGRATION) {
                Err(e) if e.code == codes::DUPLICATE_KEY => {
                    // What it was is not to be seen while it waits.
                    unit.delete(record, Origin::MIGRATION)?;
                    Err(e)
                }
                done => done,
            },
            _ => unit.insert(doc, Origin::MIGRATION).map(drop),
        };
        match written {
            Err(e) if e.code == codes::DUPLICATE_KEY => {
                self.aside.lock().insert(key, doc.to_owned());
                Ok(())
            }
            done => done,
        }
    }
    /// The document with the `_id` of `doc`, and whether it came from this donor.
    fn find(&self, unit: &WriteUnit<'_>, donor: usize, doc: Doc<'_>) -> Result<Option<(RecordId, bool)>> {
        let found = unit.existing()?.find_id(doc.get("_id").unwrap_or(ValueRef::Null));
        Ok(found.map(|(record, old)| (record, owned(self.now.as_deref(), &self.donors[donor], old))))
    }

    async fn take_sessions(&self, role: &Arc<ShardRole>) -> Result<()> {
        for donor in (0..self.donors.len()).filter(|d| self.donors[*d] != self.own) {
            loop {
                let part = self.ask(role, donor, "sessions").await?;
                if sessions::apply(role, &self.ns, &part).await? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn list<'a>(reply: &'a DocBuf, name: &str) -> impl Iterator<Item = Doc<'a>> {
    let list = reply.get(name).and_then(|v| v.as_array());
    list.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document())
}
fn id_key(doc: Doc<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    key_string::append(&mut key, doc.get("_id").unwrap_or(ValueRef::Null), false);
    key
}

/// The index for a shard key, where none of `indexes` serves it.
pub fn key_index(
    key: &ShardKeyPattern,
    indexes: &[Document],
    collation: bool,
    unique: bool,
) -> Option<Document> {
    let serves = |spec: &Document| {
        let plain = |name: &str| !spec.get(name).is_some_and(Value::truthy);
        let compares =
            |k: &Document| k.len() == key.fields().len() && (!plain("unique") || k.keys().eq(["_id"]));
        spec.get_document("key").is_some_and(|k| key.is_prefix_of(k) && (!unique || compares(k)))
            && plain("sparse")
            && !spec.contains_key("partialFilterExpression")
            && spec.get_document("collation").is_none_or(|c| c.get_str("locale") == Some("simple"))
    };
    if indexes.iter().any(serves) {
        return None;
    }
    let mut spec = doc! { "v": 2, "key": key.document().clone(), "name": key.index_name() };
    if collation {
        spec.push("collation", doc! { "locale": "simple" });
    }
    if unique {
        spec.push("unique", true);
    }
    Some(spec)
}

/// `_shardsvrReshardSwitch`: the copy takes the collection's name; a shard without a copy drops what it has of the old one. A
/// repeat finds the copy in place.
///
/// # Errors
/// OperationFailed (96) when a part of the copy should be here and is not: the old collection stays. A failed log.
pub(crate) async fn switch(role: &Arc<ShardRole>, of: &Resharding) -> Result<Document> {
    let (ns, temporary, old, new) = (&of.ns, &of.temporary, of.old, of.new);
    let (node, op) = (&role.node, Operation::internal_marked(true));
    let uuid_of =
        |ns: &str| role.node.namespaces.slot(ns).read_unchecked().collection.as_ref().map(|c| c.meta().uuid);
    if uuid_of(temporary) == Some(new) {
        node::ddl::rename::rename(node, &op, temporary, ns, DropTarget::Drop).await?;
    } else if uuid_of(ns) != Some(new) {
        role.require_no_chunks(new, ns).await?;
        node::ddl::collections::drop_if(node, &op, ns, true, |uuid| uuid == Some(old)).await?;
    }
    role.clear_placement(ns);
    role.clear_placement(temporary);
    role.resharding.forget(new);
    progress::forget(role, of).await?;
    Ok(Document::new())
}

/// `_shardsvrReshardAbort`: what was copied goes, and nothing of the resharding is known here any more.
///
/// # Errors
/// A failed log; ExceededTimeLimit (262).
pub(crate) async fn abort(role: &Arc<ShardRole>, of: &Resharding) -> Result<Document> {
    end(role, of.new).await?;
    role.resharding.forget(of.new);
    progress::forget(role, of).await?;
    let op = Operation::internal_marked(true);
    // The next resharding of the collection copies under the same name.
    let this = |uuid| uuid == Some(of.new);
    if node::ddl::collections::drop_if(&role.node, &op, &of.temporary, true, this).await?.is_some() {
        role.clear_placement(&of.temporary);
    }
    Ok(Document::new())
}
