//! Atomic batches: several changes in several namespaces, one `applyOps` entry. For metadata that must change together.
//!
//! Latches are taken in namespace order. Each change is prepared against what the earlier ones of the batch left; when
//! one fails, the trees touched are put back to the snapshot taken first, and nothing is logged.

use crate::namespace::{Slot, SlotState};
use crate::write::unit::BatchWrite;
use crate::{Node, Operation, log_failed};
use document::{Document, Result, Value, doc, err};
use parking_lot::RwLockWriteGuard;
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::CollectionSnapshot;
use storage::entry::{Draft, EntryParts, Op};
use storage::log::{Appended, Class, MAX_PAYLOAD};

/// The most bytes of an entry's `o`, with room for what stands around it.
const ENTRY_BYTES_MAX: u64 = MAX_PAYLOAD - 1024;

impl Node {
    /// Commits all of `writes` or none. Namespaces must exist; no placement is checked: this is for a node's own metadata.
    ///
    /// # Errors
    /// NamespaceNotFound (26), DuplicateKey (11000) and what else a change may answer; then nothing has changed.
    pub async fn commit_batch(&self, op: &Operation, writes: &[BatchWrite]) -> Result<Option<Appended>> {
        if writes.is_empty() {
            return Ok(None);
        }
        self.log.admit(0).await.map_err(log_failed)?;
        let slots: BTreeMap<&str, Arc<Slot>> =
            writes.iter().map(|w| (w.ns(), self.namespaces.slot(w.ns()))).collect();
        let _gate = self.gate.read();
        let mut states: BTreeMap<&str, RwLockWriteGuard<'_, SlotState>> =
            slots.iter().map(|(ns, slot)| (*ns, slot.write_unchecked())).collect();
        let mut before = BTreeMap::new();
        for (ns, state) in &states {
            let collection = state
                .collection
                .as_ref()
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}"))?;
            before.insert(ns.to_string(), collection.snapshot());
        }
        let mut entries: Vec<Document> = Vec::with_capacity(writes.len());
        for write in writes {
            let collection = states.get_mut(write.ns()).and_then(|s| s.collection.as_mut());
            let applied = match collection {
                Some(c) => apply(c, write, &mut entries),
                None => Err(err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", write.ns())),
            };
            if let Err(e) = applied {
                put_back(&mut states, &before);
                return Err(e);
            }
        }
        let o = doc! { "applyOps": entries }.to_doc_buf();
        // The log cannot be read past an entry that is too large.
        if o.bytes().len() as u64 > ENTRY_BYTES_MAX {
            put_back(&mut states, &before);
            return Err(err!(
                TRANSACTION_TOO_LARGE,
                "a batch of {} writes is too large for one entry",
                writes.len()
            ));
        }
        let mut parts = EntryParts::default();
        Draft::new(Op::Command, "admin.$cmd", None).encode(o.doc(), &mut parts);
        let appended = self.log.append(Class::Oplog, &[&parts.slices(o.doc())]);
        for write in writes {
            self.tell(write);
        }
        op.note_commit(Some(&appended));
        Ok(Some(appended))
    }

    fn tell(&self, write: &BatchWrite) {
        for observer in self.observers.of(write.ns()) {
            match write {
                BatchWrite::Insert { ns, doc } => observer.inserted(ns, doc.to_doc_buf().doc()),
                BatchWrite::Put { ns, doc } => observer.updated(ns, doc.to_doc_buf().doc()),
                BatchWrite::Delete { ns, id } => {
                    observer.deleted(ns, doc! { "_id": id.clone() }.to_doc_buf().doc());
                }
            }
        }
    }
}

fn put_back(
    states: &mut BTreeMap<&str, RwLockWriteGuard<'_, SlotState>>,
    before: &BTreeMap<String, CollectionSnapshot>,
) {
    for (ns, snapshot) in before {
        if let Some(c) = states.get_mut(ns.as_str()).and_then(|s| s.collection.as_mut()) {
            c.restore(snapshot);
        }
    }
}

fn apply(c: &mut storage::Collection, write: &BatchWrite, entries: &mut Vec<Document>) -> Result<()> {
    let uuid = Value::uuid(c.uuid());
    let find = |c: &storage::Collection, id: &Value| {
        let holder = id.to_holder();
        holder.get("").and_then(|id| c.find_id(id)).map(|(record, _)| record)
    };
    match write {
        BatchWrite::Insert { ns, doc } => insert(c, ns, doc, uuid, entries),
        BatchWrite::Put { ns, doc } => {
            let id = doc.get("_id").cloned().unwrap_or(Value::Null);
            let Some(record) = find(c, &id) else { return insert(c, ns, doc, uuid, entries) };
            let bytes = doc.to_doc_buf();
            let plan = c.prepare_update(record, bytes.doc())?;
            c.update(record, plan, bytes.doc());
            entries.push(doc! { "op": "u", "ns": ns, "ui": uuid, "o": doc.clone(), "o2": { "_id": id } });
            Ok(())
        }
        BatchWrite::Delete { ns, id } => {
            if let Some(record) = find(c, id) {
                c.delete(record);
                entries.push(doc! { "op": "d", "ns": ns, "ui": uuid, "o": { "_id": id.clone() } });
            }
            Ok(())
        }
    }
}

fn insert(
    c: &mut storage::Collection,
    ns: &str,
    doc: &Document,
    uuid: Value,
    entries: &mut Vec<Document>,
) -> Result<()> {
    let bytes = doc.to_doc_buf();
    let plan = c.prepare_insert(bytes.doc())?;
    c.insert(plan, bytes.doc());
    let id = doc.get("_id").cloned().unwrap_or(Value::Null);
    entries.push(doc! { "op": "i", "ns": ns, "ui": uuid, "o": doc.clone(), "o2": { "_id": id } });
    Ok(())
}
