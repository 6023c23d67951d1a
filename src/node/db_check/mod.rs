//! `dbCheck`: do the members of a set hold the same documents, and do their indexes fit these documents?
//!
//! ```text
//! primary     under the latch of the collection: the checksum of the next documents by _id  ->  entry
//!             {dbCheck: ns, type: "batch", batchStart: {_id}, after, batchEnd: {_id}, md5}
//! secondary   at that entry: a snapshot of the collection  ->  entry appended
//!             beside the application: the checksum of the same range, compared with the entry's
//! each        what it found, as documents of its own local.system.healthlog
//! ```
//! Checksum and entry are one commit, so at the entry's place in the log every member has to hold exactly these documents. Batches
//! join: each begins after the end of the one before, the first at the command's `start` and the last at its `end`, so a document
//! that only one member has is in a batch, too.
//!
//! A latch is held for a bounded time ([`batch::LATCH_MAX`]); what takes longer, the look at every index, reads a snapshot.
//!
//! Invariant: a check changes nothing but the health logs, which are not replicated.
//! Invariant: a check ends with the reign of the primary that runs it.

mod batch;
pub mod follow;
pub mod health_log;
mod indexes;
pub mod request;

use crate::namespace::Slot;
use crate::{Node, Operation, Request};
use batch::{Bounds, Limits, Sum};
use document::{Document, Result, codes, doc};
use health_log::{Finding, Severity};
use request::{Asked, Mode};
use std::sync::Arc;
use storage::{CollectionSnapshot, CollectionView};

/// The checks of one node: those it runs, one after the other, and those it follows.
#[derive(Default)]
pub struct Checks {
    turn: tokio::sync::Mutex<()>,
    pub(crate) heard: follow::Heard,
}

/// Begins a check, which goes on after the reply. Of batches without a fault one in `note_every` is noted.
///
/// # Errors
/// What is wrong with the request; NamespaceNotFound (26).
pub fn begin(node: &Arc<Node>, request: Request<'_>, note_every: u64) -> Result<()> {
    let asked = Asked::read(node, request)?;
    let (node, reigns) = (node.clone(), node.reigns_ended());
    runtime::spawn(async move {
        let op = Operation::internal();
        op.note_reign(reigns);
        // A primary that has stepped down in the middle leaves a check without its end, as one that was killed does.
        drop(node.while_reign_lasts(&op, run(&node, &asked, note_every)).await);
    });
    Ok(())
}

async fn run(node: &Arc<Node>, asked: &Asked, note_every: u64) -> Result<()> {
    let _turn = node.db_checks.turn.lock().await;
    for ns in &asked.namespaces {
        let check = Check { node, asked, slot: node.namespaces.slot(ns), note_every };
        if let Err(error) = check.run().await {
            let data = doc! { "success": false, "error": error.message.as_str() };
            let finding = Finding { ns, uuid: None, scope: "cluster", operation: "dbCheckBatch", data };
            finding.note(node, Severity::Error, "dbCheck failed").await;
        }
    }
    Ok(())
}

/// The check of one collection, on the primary.
struct Check<'a> {
    node: &'a Arc<Node>,
    asked: &'a Asked,
    slot: Arc<Slot>,
    note_every: u64,
}

/// A batch that was summed up, and the collection as it was.
struct Batch {
    sum: Sum,
    snapshot: CollectionSnapshot,
    noted: bool,
}

impl Check<'_> {
    async fn run(&self) -> Result<()> {
        self.mark("start", "dbCheckStart").await?;
        match &self.asked.mode {
            Mode::ExtraIndexKeys(index) => self.extra_keys(index).await?,
            Mode::Documents | Mode::DocumentsAndMissingKeys => self.batches().await?,
        }
        self.mark("stop", "dbCheckStop").await
    }

    fn entry(&self, kind: &str) -> Document {
        doc! { "dbCheck": self.slot.ns.as_str(), "type": kind }
    }

    /// Says on every member that the check begins or ends.
    async fn mark(&self, kind: &str, operation: &'static str) -> Result<()> {
        let (op, parameters) = (Operation::internal(), self.asked.shown());
        let mut entry = self.entry(kind);
        entry.push("dbCheckParameters", parameters.clone());
        let write = self.node.write(&op, &self.slot, |unit| {
            let uuid = unit.existing()?.uuid();
            unit.command(Some(uuid), entry, None, false);
            Ok(uuid)
        });
        let uuid = match write.await {
            Ok((uuid, _)) => Some(uuid),
            // What was dropped meanwhile has no more batches.
            Err(e) if e.code == codes::NAMESPACE_NOT_FOUND => None,
            Err(e) => return Err(e),
        };
        let data = doc! { "success": true, "dbCheckParameters": parameters };
        let finding = Finding { ns: &self.slot.ns, uuid, scope: "cluster", operation, data };
        finding.note(self.node, Severity::Info, "").await;
        Ok(())
    }

    async fn batches(&self) -> Result<()> {
        let mut bounds = self.asked.bounds.clone();
        let (mut documents, mut bytes, mut number) = (0, 0, 0);
        loop {
            let limits = self.asked.limits(documents, bytes);
            let noted = number % self.note_every.max(1) == 0;
            let Some(batch) = self.batch(&bounds, &limits, noted).await? else { return Ok(()) };
            let sum = &batch.sum;
            (documents, bytes, number) = (documents + sum.documents, bytes + sum.bytes, number + 1);
            if self.asked.mode == Mode::DocumentsAndMissingKeys {
                let range = Bounds { to: sum.to.clone(), ..bounds.clone() };
                indexes::note_missing_keys(self.node, &self.slot.ns, &batch.snapshot, &range).await?;
            }
            let at_limit = self.asked.has_reached(documents, bytes);
            if sum.is_last || at_limit {
                return Ok(());
            }
            bounds = Bounds { from: sum.to.clone(), after: true, to: bounds.to };
            tokio::task::yield_now().await;
        }
    }

    /// Sums up the next batch and says so in the log, as one commit. `None` where the collection was dropped.
    async fn batch(&self, bounds: &Bounds, limits: &Limits, noted: bool) -> Result<Option<Batch>> {
        let op = Operation::internal();
        let mut entry = self.entry("batch");
        let written = self.node.write(&op, &self.slot, |unit| {
            let Some(collection) = unit.collection() else { return Ok(None) };
            let sum = batch::sum(collection, bounds, limits)?;
            let (uuid, snapshot) = (collection.uuid(), collection.snapshot());
            entry.0.extend(sum.range(bounds).0);
            entry.push("logBatchToHealthLog", noted);
            entry.push("validateMode", self.asked.mode.name());
            unit.command(Some(uuid), entry, None, false);
            Ok(Some(Batch { sum, snapshot, noted }))
        });
        let (batch, appended) = written.await?;
        let Some(batch) = batch else { return Ok(None) };
        if batch.noted {
            let mut data = doc! { "success": true };
            data.0.extend(batch.sum.shown(bounds).0);
            if let Some(appended) = appended {
                data.push(
                    "optime",
                    doc! { "ts": document::Timestamp::from_u64(appended.last.ts), "t": appended.last.term },
                );
            }
            let uuid = Some(batch.snapshot.meta().uuid);
            let finding =
                Finding { ns: &self.slot.ns, uuid, scope: "cluster", operation: "dbCheckBatch", data };
            finding.note(self.node, Severity::Info, CONSISTENT).await;
        }
        self.acknowledge(op).await;
        Ok(Some(batch))
    }

    /// Waits as `batchWriteConcern` asks, so that a check goes no faster than the members that have to follow it.
    async fn acknowledge(&self, mut op: Operation) {
        op.write_concern = self.asked.write_concern.clone();
        let failure = match self.node.acknowledge(&op).await {
            Ok(None) => return,
            Ok(Some(error)) => error.get_str("errmsg").unwrap_or("").to_string(),
            Err(error) => error.message,
        };
        let data = doc! { "success": false, "error": failure };
        let finding =
            Finding { ns: &self.slot.ns, uuid: None, scope: "cluster", operation: "dbCheckBatch", data };
        finding.note(self.node, Severity::Warning, "dbCheck failed waiting for writeConcern").await;
    }

    /// One batch: every entry of an index, on each member as of the same moment.
    async fn extra_keys(&self, index: &str) -> Result<()> {
        let op = Operation::internal();
        let mut entry = self.entry("batch");
        entry.push("validateMode", self.asked.mode.name());
        entry.push("secondaryIndex", index);
        let write = self.node.write(&op, &self.slot, |unit| {
            let Some(collection) = unit.collection() else { return Ok(None) };
            let (uuid, snapshot) = (collection.uuid(), collection.snapshot());
            unit.command(Some(uuid), entry, None, false);
            Ok(Some(snapshot))
        });
        if let (Some(snapshot), _) = write.await? {
            indexes::note_extra_keys(self.node, &self.slot.ns, &snapshot, index).await?;
        }
        self.acknowledge(op).await;
        Ok(())
    }
}

const CONSISTENT: &str = "dbCheck batch consistent";
const INCONSISTENT: &str = "dbCheck batch inconsistent";
