//! Samples on the node that keeps them: buffered, and written regularly with the date on which they expire.

use super::Sample;
use crate::local::LocalClient;
use crate::write::unit::BatchWrite;
use crate::{Node, Operation};
use document::{Doc, Document, Result, Value, doc};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// DO NOT CHANGE: clients read them.
pub const QUERIES: &str = "config.sampledQueries";
pub const DIFFS: &str = "config.sampledQueriesDiff";

/// Documents of one commit.
const BATCH: usize = 500;
/// How long a secondary waits for its primary, which keeps the samples and knows what is sampled.
pub const PRIMARY_LIMIT: Duration = Duration::from_secs(10);

/// What is to be written.
#[derive(Default)]
pub struct Samples {
    /// Some collection is sampled: what updates have changed is of use.
    wanted: AtomicBool,
    /// `queryAnalysisSampleExpirationSecs`.
    expire_secs: AtomicI64,
    /// `queryAnalysisWriterMaxMemoryUsageBytes`: what goes beyond is lost.
    bytes_max: AtomicI64,
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    queries: Vec<Document>,
    diffs: Vec<Document>,
    bytes: usize,
}

impl Samples {
    pub fn set(&self, wanted: bool, expire_secs: i64, bytes_max: i64) {
        self.wanted.store(wanted, Relaxed);
        self.expire_secs.store(expire_secs, Relaxed);
        self.bytes_max.store(bytes_max, Relaxed);
    }
    /// Keeps a query; its bytes, or `None` where there is no room.
    pub fn query(&self, sample: &Sample, now_ms: i64) -> Option<usize> {
        self.keep(sample.to_document(), now_ms, |buffer| &mut buffer.queries)
    }
    /// Keeps which fields the update that was sampled under `id` has changed.
    pub fn diff(&self, id: [u8; 16], ns: &str, uuid: [u8; 16], diff: Document, now_ms: i64) {
        if !self.wanted.load(Relaxed) {
            return;
        }
        let d = doc! { "_id": Value::uuid(id), "ns": ns, "collectionUuid": Value::uuid(uuid), "diff": diff };
        let _ = self.keep(d, now_ms, |buffer| &mut buffer.diffs);
    }
    fn keep(
        &self,
        mut d: Document,
        now_ms: i64,
        of: impl FnOnce(&mut Buffer) -> &mut Vec<Document>,
    ) -> Option<usize> {
        let expires = self.expire_secs.load(Relaxed).saturating_mul(1000).saturating_add(now_ms);
        d.push("expireAt", Value::DateTime(expires));
        let bytes = d.to_vec().len();
        let mut buffer = self.buffer.lock();
        if (buffer.bytes + bytes) as i64 > self.bytes_max.load(Relaxed) {
            return None;
        }
        buffer.bytes += bytes;
        of(&mut buffer).push(d);
        Some(bytes)
    }
}

impl Node {
    /// Makes the collections of samples, whose documents expire.
    ///
    /// # Errors
    /// A failed log; those of a member that is no primary.
    pub async fn ensure_samples(self: &Arc<Self>) -> Result<()> {
        let local = LocalClient::new(self.clone());
        for (ns, index) in [(QUERIES, "SampledQueriesTTLIndex"), (DIFFS, "SampledQueriesDiffTTLIndex")] {
            if self.namespaces.slot(ns).read_unchecked().collection.is_none() {
                let options = doc! { "name": index, "expireAfterSeconds": 0 };
                local.ensure_collection(ns, &[(doc! { "expireAt": 1 }, options)]).await?;
            }
        }
        Ok(())
    }

    /// Writes what is buffered: here, or on the primary of the set. What cannot be written is lost.
    ///
    /// # Errors
    /// Those of the writes.
    pub async fn write_samples(self: &Arc<Self>) -> Result<()> {
        let Buffer { queries, diffs, .. } = std::mem::take(&mut *self.samples.buffer.lock());
        if queries.is_empty() && diffs.is_empty() {
            return Ok(());
        }
        if self.is_writable() {
            self.ensure_samples().await?;
        }
        for (ns, documents) in [(QUERIES, queries), (DIFFS, diffs)] {
            for part in documents.chunks(BATCH) {
                match self.is_writable() {
                    true => self.write_part(ns, part).await?,
                    false => self.send_part(ns, part).await?,
                }
            }
        }
        Ok(())
    }
    async fn write_part(&self, ns: &str, part: &[Document]) -> Result<()> {
        // An update of many documents has changed several of them: one diff is enough.
        let writes: Vec<BatchWrite> =
            part.iter().map(|d| BatchWrite::Put { ns: ns.to_string(), doc: d.clone() }).collect();
        self.commit_batch(&Operation::internal(), &writes).await.map(drop)
    }
    async fn send_part(&self, ns: &str, part: &[Document]) -> Result<()> {
        let (db, collection) = storage::split_namespace(ns);
        let documents: Vec<Value> = part.iter().map(|d| Value::Document(d.clone())).collect();
        let command = doc! { "insert": collection, "documents": Value::Array(documents), "ordered": false };
        self.run_on_primary(db, command, PRIMARY_LIMIT).await.map(drop)
    }
}

/// Which fields differ: `"i"` for one that came, `"d"` for one that went, `"u"` for another value; of documents in both, which of
/// their fields.
pub fn difference(old: Doc<'_>, new: Doc<'_>) -> Document {
    let mut out = Document::new();
    for e in new.iter() {
        match old.get(e.name()) {
            None => out.push(e.name(), "i"),
            Some(was) if was == e.value() => {}
            Some(was) => match (was.as_document(), e.value().as_document()) {
                (Some(was), Some(is)) => out.push(e.name(), difference(was, is)),
                _ => out.push(e.name(), "u"),
            },
        }
    }
    for e in old.iter().filter(|e| new.get(e.name()).is_none()) {
        out.push(e.name(), "d");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_fields_that_changed() {
        let old = doc! { "_id": 1, "a": 1, "b": { "c": 1, "d": 1 }, "gone": 1, "list": [1, 2] }.to_doc_buf();
        let new = doc! { "_id": 1, "a": 2, "b": { "c": 1, "d": 2 }, "list": [1], "come": 1 }.to_doc_buf();
        let expected = doc! { "a": "u", "b": { "d": "u" }, "list": "u", "come": "i", "gone": "d" };
        assert_eq!(difference(old.doc(), new.doc()), expected);
        assert_eq!(difference(old.doc(), old.doc()), doc! {});
    }

    #[test]
    fn what_does_not_fit_is_lost() {
        let samples = Samples::default();
        let sample = Sample {
            id: [1; 16],
            ns: "d.c".into(),
            uuid: [2; 16],
            name: "find".into(),
            command: doc! { "filter": {} },
        };
        samples.set(true, 10, 300);
        let bytes = samples.query(&sample, 5).unwrap();
        samples.diff([1; 16], "d.c", [2; 16], doc! { "a": "u" }, 5);
        assert_eq!(samples.query(&sample, 5), None);
        let buffer = samples.buffer.lock();
        assert_eq!((buffer.queries.len(), buffer.diffs.len()), (1, 1));
        assert!(buffer.bytes > bytes && buffer.bytes <= 300);
        assert_eq!(buffer.queries[0].get("expireAt"), Some(&Value::DateTime(10_005)));
    }
}
