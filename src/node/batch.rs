//! Atomic batches: several changes in several namespaces, one `applyOps` entry. For metadata that must change together.

use crate::write::commit::WideUnit;
use crate::write::unit::BatchWrite;
use crate::{Node, Operation, Origin};
use document::{Result, bail, doc, err};
use std::sync::Arc;
use storage::log::{Appended, MAX_PAYLOAD};

/// The most bytes of an entry's `o`, with room for what stands around it.
pub(crate) const ENTRY_BYTES_MAX: u64 = MAX_PAYLOAD - 1024;

impl Node {
    /// Commits all of `writes` or none. Namespaces must exist; no placement is checked: this is for a node's own metadata.
    ///
    /// # Errors
    /// NamespaceNotFound (26), DuplicateKey (11000) and what else a change may return; then nothing has changed.
    pub async fn commit_batch(&self, op: &Operation, writes: &[BatchWrite]) -> Result<Option<Appended>> {
        if writes.is_empty() {
            return Ok(None);
        }
        let slots: Vec<Arc<_>> = writes.iter().map(|w| self.namespaces.slot(w.ns())).collect();
        let (_, appended) = self
            .write_wide(op, &slots, |unit| {
                unit.all_or_nothing(|unit| {
                    for write in writes {
                        apply(unit, write)?;
                    }
                    // The log cannot be read past an entry that is too large.
                    if unit.group() as u64 > ENTRY_BYTES_MAX {
                        bail!(
                            TRANSACTION_TOO_LARGE,
                            "a batch of {} writes is too large for one entry",
                            writes.len()
                        );
                    }
                    Ok(())
                })?;
                writes.iter().for_each(|write| self.tell(write));
                Ok(())
            })
            .await?;
        Ok(appended)
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

fn apply(unit: &mut WideUnit<'_>, write: &BatchWrite) -> Result<()> {
    let missing = || err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", write.ns());
    let mut unit = unit.on(write.ns()).ok_or_else(missing)?;
    let collection = unit.collection().ok_or_else(missing)?;
    let id = match write {
        BatchWrite::Insert { doc, .. } => {
            return unit.insert(doc.to_doc_buf().doc(), Origin::default()).map(|_| ());
        }
        BatchWrite::Put { doc, .. } => doc.get("_id").cloned().unwrap_or(document::Value::Null),
        BatchWrite::Delete { id, .. } => id.clone(),
    };
    let record = id.to_holder().get("").and_then(|id| collection.record_of_id(id));
    match (write, record) {
        (BatchWrite::Delete { .. }, Some(record)) => unit.delete(record, Origin::default()).map(|_| ()),
        (BatchWrite::Put { doc, .. }, Some(record)) => {
            unit.replace(record, doc.to_doc_buf().doc(), Origin::default())
        }
        (BatchWrite::Put { doc, .. }, None) => {
            unit.insert(doc.to_doc_buf().doc(), Origin::default()).map(|_| ())
        }
        _ => Ok(()),
    }
}
