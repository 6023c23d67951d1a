//! Atomic batches: several changes in several namespaces, one `applyOps` entry. For metadata that must change together.

use crate::write::commit::WideUnit;
use crate::write::unit::BatchWrite;
use crate::{Node, Operation, Origin};
use document::{Document, Error, Result, Value, bail, doc, err};
use std::borrow::Cow;
use std::sync::Arc;
use storage::log::{Appended, MAX_PAYLOAD};

/// The most bytes of an entry's `o`, with room for what stands around it: the reply of a member to another holds it.
pub(crate) const ENTRY_BYTES_MAX: u64 = document::validate::Limits::MESSAGE.bytes_max as u64 - 64 * 1024;
const _: () = assert!(ENTRY_BYTES_MAX < MAX_PAYLOAD - 1024, "the log holds more than a message");

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
                let made = unit.all_or_nothing(|unit| {
                    let mut made = Vec::with_capacity(writes.len());
                    for write in writes {
                        let (gone, write) = settled(unit, write)?;
                        for write in gone.map(Cow::Owned).into_iter().chain([write]) {
                            apply(unit, &write)?;
                            made.push(write);
                        }
                    }
                    // Neither the log nor another member could be read past an entry that is too large.
                    if unit.group() as u64 > ENTRY_BYTES_MAX {
                        bail!(
                            TRANSACTION_TOO_LARGE,
                            "a batch of {} writes is too large for one entry",
                            writes.len()
                        );
                    }
                    Ok(made)
                })?;
                made.iter().for_each(|write| self.tell(write));
                Ok(())
            })
            .await?;
        Ok(appended)
    }

    fn tell(&self, write: &BatchWrite) {
        for observer in self.observers.of(write.ns()) {
            match write {
                BatchWrite::Insert { ns, doc } => observer.inserted(ns, doc.to_doc_buf().doc()),
                BatchWrite::Put { ns, doc } | BatchWrite::Change { ns, after: doc, .. } => {
                    observer.updated(ns, doc.to_doc_buf().doc());
                }
                BatchWrite::Delete { ns, id } => {
                    observer.deleted(ns, doc! { "_id": id.clone() }.to_doc_buf().doc());
                }
            }
        }
    }
}

/// A change as what it comes to by the document that is there: what goes, where it has another `_id` from now on, and what is put. Any
/// other write as it is.
fn settled<'w>(
    unit: &mut WideUnit<'_>,
    write: &'w BatchWrite,
) -> Result<(Option<BatchWrite>, Cow<'w, BatchWrite>)> {
    let BatchWrite::Change { ns, before, after } = write else { return Ok((None, Cow::Borrowed(write))) };
    let unit = unit.on(ns).ok_or_else(|| missing(ns))?;
    let collection = unit.collection().ok_or_else(|| missing(ns))?;
    let id = if before.contains_key("_id") { id_of(before) } else { id_of(after) };
    let there = id.to_holder().get("").and_then(|id| collection.find_id(id)).map(|(_, d)| d.to_document());
    let doc = there.map_or_else(|| after.clone(), |there| changed(there, before, after));
    let gone = (id != id_of(after)).then(|| BatchWrite::Delete { ns: ns.clone(), id });
    Ok((gone, Cow::Owned(BatchWrite::Put { ns: ns.clone(), doc })))
}

fn id_of(doc: &Document) -> Value {
    doc.get("_id").cloned().unwrap_or(Value::Null)
}
fn missing(ns: &str) -> Error {
    err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}")
}

fn apply(unit: &mut WideUnit<'_>, write: &BatchWrite) -> Result<()> {
    let mut unit = unit.on(write.ns()).ok_or_else(|| missing(write.ns()))?;
    let collection = unit.collection().ok_or_else(|| missing(write.ns()))?;
    let record = |id: Value| id.to_holder().get("").and_then(|id| collection.record_of_id(id));
    match write {
        BatchWrite::Delete { id, .. } => {
            if let Some(record) = record(id.clone()) {
                unit.delete(record, Origin::default())?;
            }
        }
        BatchWrite::Insert { doc, .. } => {
            unit.insert(doc.to_doc_buf().doc(), Origin::default())?;
        }
        BatchWrite::Put { doc, .. } | BatchWrite::Change { after: doc, .. } => match record(id_of(doc)) {
            Some(record) => unit.replace(record, doc.to_doc_buf().doc(), Origin::default())?,
            None => {
                unit.insert(doc.to_doc_buf().doc(), Origin::default())?;
            }
        },
    }
    Ok(())
}

/// `there` with the fields in which `after` differs from `before`.
fn changed(mut there: Document, before: &Document, after: &Document) -> Document {
    for (name, _) in before.iter().filter(|(name, _)| !after.contains_key(name)) {
        there.remove(name);
    }
    for (name, value) in after.iter().filter(|(name, value)| before.get(name) != Some(value)) {
        there.insert(name, value.clone());
    }
    there
}
