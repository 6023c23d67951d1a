//! How far a member is that copies everything: `replSetGetStatus.initialSyncStatus`.

use document::error::RETRIABLE;
use document::{Doc, Document, Error, Timestamp, Value, codes, doc};
use runtime::Instant;
use std::collections::BTreeMap;

/// Attempts that are shown.
const ATTEMPTS_SHOWN: usize = 10;
/// The source of an attempt that has found none: an address of no host.
const NO_SOURCE: &str = ":27017";

/// One collection of a copy.
#[derive(Clone, Debug)]
pub(super) struct CopiedCollection {
    pub ns: String,
    pub documents: i64,
    pub copied: i64,
    pub bytes: i64,
    pub copied_bytes: i64,
    pub indexes: i32,
    pub batches: i64,
    pub begun_ms: i64,
    pub ended_ms: Option<i64>,
}

/// The attempt that is under way.
#[derive(Clone, Debug)]
struct Attempt {
    began: Instant,
    source: String,
    retries: i64,
    collections: Vec<CopiedCollection>,
    /// The newest entry of the source when the copy was opened, and the first that comes along with it.
    entry: u64,
    first: u64,
    /// How often the source had rolled back.
    rollback_id: Option<i64>,
    unreachable: Option<(Instant, i64)>,
    unreachable_ms: i64,
}

impl Attempt {
    fn unreachable_ms(&self) -> i64 {
        self.unreachable_ms + self.unreachable.map_or(0, |(since, _)| millis(since))
    }
    fn ended(&self, error: &Error) -> Document {
        let mut d = doc! {
            "durationMillis": millis(self.began), "status": error.to_string(), "syncSource": self.source.as_str(),
        };
        if let Some(id) = self.rollback_id {
            d.push("rollBackId", id as i32);
        }
        d.push("operationsRetried", self.retries);
        d.push("totalTimeUnreachableMillis", self.unreachable_ms());
        d
    }
}

fn millis(since: Instant) -> i64 {
    since.elapsed().as_millis() as i64
}

/// The copy of a member, over all attempts until one succeeds.
#[derive(Clone, Debug, Default)]
pub(super) struct CopyStatus {
    began: Option<(Instant, i64)>,
    failed: i64,
    /// How many of them failed by more than a source that was gone, or not yet where it can be copied from.
    counted: u32,
    attempts: Vec<Document>,
    now: Option<Attempt>,
}

impl CopyStatus {
    /// An attempt begins, with a look for somebody to copy from.
    pub(super) fn begin(&mut self, now_ms: i64) {
        let began = Instant::now();
        self.began.get_or_insert((began, now_ms));
        self.now = Some(Attempt {
            began,
            source: NO_SOURCE.to_string(),
            retries: 0,
            collections: Vec::new(),
            entry: 0,
            first: 0,
            rollback_id: None,
            unreachable: None,
            unreachable_ms: 0,
        });
    }
    pub(super) fn chose(&mut self, source: &str) {
        if let Some(attempt) = &mut self.now {
            attempt.source = source.to_string();
        }
    }
    /// A source that has rolled back so often has opened a copy that is exact at an entry, of a time, and brings its log from
    /// another time on.
    pub(super) fn opened(
        &mut self,
        rollback_id: Option<i64>,
        (first, entry): (u64, u64),
        collections: Vec<CopiedCollection>,
    ) {
        if let Some(attempt) = &mut self.now {
            (attempt.rollback_id, attempt.first, attempt.entry) = (rollback_id, first, entry);
            attempt.collections = collections;
        }
    }
    pub(super) fn collection(&mut self, index: usize, change: impl FnOnce(&mut CopiedCollection)) {
        if let Some(collection) = self.now.as_mut().and_then(|a| a.collections.get_mut(index)) {
            change(collection);
        }
    }
    /// The source did not reply.
    pub(super) fn unreachable(&mut self, now_ms: i64) {
        if let Some(attempt) = &mut self.now {
            attempt.retries += 1;
            attempt.unreachable.get_or_insert((Instant::now(), now_ms));
        }
    }
    /// It did.
    pub(super) fn reached(&mut self) {
        if let Some(attempt) = &mut self.now
            && let Some((since, _)) = attempt.unreachable.take()
        {
            attempt.unreachable_ms += millis(since);
        }
    }
    /// Returns how many attempts failed for a reason that is not that of a moment.
    pub(super) fn failed(&mut self, error: &Error) -> u32 {
        self.failed += 1;
        let passes = error.is(RETRIABLE)
            || matches!(
                error.code,
                codes::INVALID_SYNC_SOURCE | codes::NOT_PRIMARY_OR_SECONDARY | codes::CURSOR_NOT_FOUND
            );
        self.counted += u32::from(!passes);
        if let Some(attempt) = self.now.take() {
            self.attempts.push(attempt.ended(error));
        }
        if self.attempts.len() > ATTEMPTS_SHOWN {
            self.attempts.remove(0);
        }
        self.counted
    }
    /// The document of an attempt that is under way; `None` where nothing is copied.
    pub(super) fn shown(&self, now_ms: i64, attempts_max: u32) -> Option<Document> {
        let (began, began_ms) = self.began?;
        let mut d = doc! {
            "failedInitialSyncAttempts": self.failed, "maxFailedInitialSyncAttempts": i64::from(attempts_max),
            "initialSyncStart": Value::DateTime(began_ms), "totalInitialSyncElapsedMillis": millis(began),
            "initialSyncAttempts": self.attempts.clone(),
        };
        if let Some(attempt) = &self.now {
            d.0.extend(attempt.shown(now_ms));
        }
        Some(d)
    }
}

impl Attempt {
    fn shown(&self, now_ms: i64) -> Document {
        let sum = |of: fn(&CopiedCollection) -> i64| self.collections.iter().map(of).sum::<i64>();
        let (bytes, copied) = (sum(|c| c.bytes), sum(|c| c.copied_bytes));
        let mut d = doc! { "approxTotalDataSize": bytes, "approxTotalBytesCopied": copied };
        if copied > 0 {
            let left = (bytes - copied).max(0) as f64 / copied as f64;
            d.push("remainingInitialSyncEstimatedMillis", (millis(self.began) as f64 * left) as i64);
        }
        // Nothing is applied on the way: the copy is exact at one entry, with which it also ends.
        d.push("appliedOps", 0i64);
        if self.entry != 0 {
            d.push("initialSyncOplogStart", Timestamp::from_u64(self.entry));
            if self.first != self.entry {
                d.push("initialSyncOplogFetchingStart", Timestamp::from_u64(self.first));
            }
            if self.collections.iter().all(|c| c.ended_ms.is_some()) {
                d.push("initialSyncOplogEnd", Timestamp::from_u64(self.entry));
            }
        }
        if let Some((since, wall)) = self.unreachable {
            d.push("syncSourceUnreachableSince", Value::DateTime(wall));
            d.push("currentOutageDurationMillis", millis(since));
        }
        d.push("totalTimeUnreachableMillis", self.unreachable_ms());
        d.push("databases", self.databases(now_ms));
        d
    }

    fn databases(&self, now_ms: i64) -> Document {
        let mut by_name: BTreeMap<&str, Vec<&CopiedCollection>> = BTreeMap::new();
        for collection in &self.collections {
            by_name.entry(storage::split_namespace(&collection.ns).0).or_default().push(collection);
        }
        let is_copied = |list: &[&CopiedCollection]| list.iter().all(|c| c.ended_ms.is_some());
        let copied = by_name.values().filter(|list| is_copied(list)).count() as i32;
        let mut d = doc! { "databasesToClone": by_name.len() as i32 - copied, "databasesCloned": copied };
        for (name, list) in by_name {
            let begun = list.iter().map(|c| c.begun_ms).filter(|ms| *ms != 0).min();
            let ended = list
                .iter()
                .map(|c| c.ended_ms)
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().max());
            let mut of = doc! {
                "collections": list.len() as i32,
                "clonedCollections": list.iter().filter(|c| c.ended_ms.is_some()).count() as i32,
            };
            push_times(&mut of, begun, ended, now_ms);
            for collection in list {
                of.push(collection.ns.clone(), collection.shown(now_ms));
            }
            d.push(name, of);
        }
        d
    }
}

impl CopiedCollection {
    /// As the source tells of it when it opens a copy.
    pub(super) fn read(line: Doc<'_>) -> CopiedCollection {
        let number = |name: &str| line.get_i64(name).unwrap_or(0);
        CopiedCollection {
            ns: line.get_str("ns").unwrap_or_default().to_string(),
            documents: number("count"),
            copied: 0,
            bytes: number("bytes"),
            copied_bytes: 0,
            indexes: line
                .get("indexes")
                .and_then(|v| v.as_array())
                .map_or(0, |list| list.iter().count() as i32),
            batches: 0,
            begun_ms: 0,
            ended_ms: None,
        }
    }
    fn shown(&self, now_ms: i64) -> Document {
        let mut d = doc! {
            "documentsToCopy": self.documents, "documentsCopied": self.copied, "indexes": self.indexes,
            "fetchedBatches": self.batches, "bytesToCopy": self.bytes, "approxBytesCopied": self.copied_bytes,
        };
        push_times(&mut d, Some(self.begun_ms).filter(|ms| *ms != 0), self.ended_ms, now_ms);
        d.push("receivedBatches", self.batches);
        d
    }
}

fn push_times(d: &mut Document, begun: Option<i64>, ended: Option<i64>, now_ms: i64) {
    let Some(begun) = begun else { return };
    d.push("start", Value::DateTime(begun));
    if let Some(ended) = ended {
        d.push("end", Value::DateTime(ended));
    }
    d.push("elapsedMillis", ended.unwrap_or(now_ms) - begun);
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::err;

    #[test]
    fn a_copy_tells_of_what_failed_and_of_how_far_it_is() {
        let mut status = CopyStatus::default();
        assert_eq!(status.shown(5, 10), None);
        status.begin(1000);
        status.chose("h:1");
        assert_eq!(status.failed(&err!(HOST_UNREACHABLE, "nobody is there")), 0);
        status.begin(2000);
        status.chose("h:2");
        let line = |ns: &str| doc! { "ns": ns, "count": 10i64, "bytes": 400i64, "indexes": [doc! {}] };
        let lines = [line("a.x"), line("a.y"), line("b.z")];
        let times = (6 << 32, 7 << 32);
        status.opened(
            Some(3),
            times,
            lines.iter().map(|d| CopiedCollection::read(d.to_doc_buf().doc())).collect(),
        );
        status.collection(0, |c| {
            (c.copied, c.copied_bytes, c.begun_ms, c.ended_ms) = (10, 400, 2100, Some(2200))
        });
        status.collection(1, |c| (c.copied, c.copied_bytes, c.begun_ms) = (5, 200, 2200));
        status.unreachable(2300);
        let shown = status.shown(2400, 10).unwrap();
        let number = |path: &str| shown.get_path(path).and_then(|v| v.as_i64());
        assert_eq!(
            (number("failedInitialSyncAttempts"), number("approxTotalDataSize")),
            (Some(1), Some(1200))
        );
        assert_eq!(
            (number("approxTotalBytesCopied"), number("databases.databasesCloned")),
            (Some(600), Some(0))
        );
        assert_eq!(number("databases.a.clonedCollections"), Some(1));
        assert_eq!(shown.get("initialSyncStart"), Some(&Value::DateTime(1000)));
        assert!(shown.contains_key("syncSourceUnreachableSince"));
        let time = |name: &str| {
            shown.get(name).and_then(|v| match v {
                Value::Timestamp(t) => Some(t.as_u64()),
                _ => None,
            })
        };
        let names = ["initialSyncOplogFetchingStart", "initialSyncOplogStart", "initialSyncOplogEnd"];
        assert_eq!(names.map(time), [Some(6 << 32), Some(7 << 32), None]);
        let Some(Value::Document(databases)) = shown.get("databases") else { panic!("no databases") };
        let Some(Value::Document(a)) = databases.get("a") else { panic!("no database") };
        let Some(Value::Document(x)) = a.get("a.x") else { panic!("no collection") };
        assert_eq!((x.get_i64("documentsCopied"), x.get_i64("elapsedMillis")), (Some(10), Some(100)));
        let Some(Value::Array(attempts)) = shown.get("initialSyncAttempts") else { panic!("no attempts") };
        let attempt = attempts[0].as_document().unwrap();
        assert_eq!(
            (attempt.get_str("syncSource"), attempt.get_str("status")),
            (Some("h:1"), Some("HostUnreachable: nobody is there"))
        );
        // What failed before it was opened says nothing of its source; what fails behind that does.
        assert!(!attempt.contains_key("rollBackId"));
        status.reached();
        for index in [1, 2] {
            status.collection(index, |c| c.ended_ms = Some(2400));
        }
        let shown = status.shown(2500, 10).unwrap();
        assert!(
            !shown.contains_key("syncSourceUnreachableSince") && shown.contains_key("initialSyncOplogEnd")
        );
        status.failed(&err!(HOST_UNREACHABLE, "it has gone"));
        let shown = status.shown(2600, 10).unwrap();
        let Some(Value::Array(attempts)) = shown.get("initialSyncAttempts") else { panic!("no attempts") };
        assert_eq!(attempts[1].as_document().and_then(|d| d.get_i64("rollBackId")), Some(3));
    }
}
