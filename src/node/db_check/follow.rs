//! A check as a secondary follows it: what the entries of the primary say, compared with what is here.
//!
//! The application of entries takes snapshots ([`Heard::note`]); the sums are made after each slice of entries, without a latch.

use super::batch::{self, Bounds, Limits};
use super::health_log::{Finding, Severity};
use super::{CONSISTENT, INCONSISTENT, indexes};
use crate::Node;
use document::{DocBuf, Result, Value, doc};
use parking_lot::Mutex;
use storage::entry::Entry;
use storage::{CollectionSnapshot, CollectionView};

/// The name of the command in the entries of a check.
pub const COMMAND: &str = "dbCheck";
/// An entry of a check, and the collection as it was there.
struct Step {
    o: DocBuf,
    snapshot: Option<CollectionSnapshot>,
}

/// The entries that were heard and not looked into yet: those of one slice of the application.
#[derive(Default)]
pub struct Heard(Mutex<Vec<Step>>);

impl Heard {
    /// Notes an entry of a check; `snapshot` is the collection at its place in the log.
    pub(crate) fn note(&self, entry: &Entry<'_>, snapshot: Option<CollectionSnapshot>) {
        self.0.lock().push(Step { o: entry.o.to_owned(), snapshot });
    }
}

/// Looks into what was heard. Application waits meanwhile, so snapshots do not pile up on a member that is slower than its primary.
pub(crate) async fn look_into(node: &Node) {
    let steps = std::mem::take(&mut *node.db_checks.heard.0.lock());
    for step in steps {
        if let Err(error) = follow(node, &step).await {
            let ns = step.o.doc().get_str(COMMAND).unwrap_or("");
            let data = doc! { "success": false, "error": error.message };
            let finding = Finding { ns, uuid: None, scope: "cluster", operation: "dbCheckBatch", data };
            finding.note(node, Severity::Error, "dbCheck failed").await;
        }
    }
}

async fn follow(node: &Node, step: &Step) -> Result<()> {
    let o = step.o.doc();
    let ns = o.get_str(COMMAND).unwrap_or("");
    let uuid = step.snapshot.as_ref().map(|s| s.meta().uuid);
    let data = doc! { "success": true, "dbCheckParameters": o.get_document("dbCheckParameters").map(|d| d.to_document()).unwrap_or_default() };
    let mark = |operation| Finding { ns, uuid, scope: "cluster", operation, data };
    match (o.get_str("type"), &step.snapshot) {
        (Some("start"), _) => mark("dbCheckStart").note(node, Severity::Info, "").await,
        (Some("stop"), _) => mark("dbCheckStop").note(node, Severity::Info, "").await,
        (Some("batch"), Some(snapshot)) => match o.get_str("secondaryIndex") {
            Some(index) => indexes::note_extra_keys(node, ns, snapshot, index).await?,
            None => compare(node, ns, step, snapshot).await?,
        },
        _ => {}
    }
    Ok(())
}

async fn compare(node: &Node, ns: &str, step: &Step, snapshot: &CollectionSnapshot) -> Result<()> {
    let o = step.o.doc();
    let id =
        |name: &str| o.get_document(name).and_then(|d| d.get("_id")).map_or(Value::Null, |id| id.to_value());
    let after = o.get_bool("after").unwrap_or(false);
    let range = Bounds { from: id("batchStart"), after, to: id("batchEnd") };
    // The range says where the batch ends.
    let whole = Limits { documents: u64::MAX, bytes: u64::MAX, time: None };
    let (blocking, of) = (snapshot.clone(), range.clone());
    let sum = move || batch::sum(&blocking, &of, &whole);
    let Ok(found) = runtime::blocking(sum).await else { return Ok(()) };
    let found = found?;
    let expected = o.get_str("md5").unwrap_or("");
    let is_equal = expected == found.md5;
    if !is_equal || o.get_bool("logBatchToHealthLog") != Some(false) {
        let mut data = doc! { "success": true };
        data.0.extend(found.shown(&range).0);
        if !is_equal {
            data.insert("md5", doc! { "expected": expected, "found": found.md5.as_str() });
        }
        let uuid = Some(snapshot.meta().uuid);
        let finding = Finding { ns, uuid, scope: "cluster", operation: "dbCheckBatch", data };
        match is_equal {
            true => finding.note(node, Severity::Info, CONSISTENT).await,
            false => finding.note(node, Severity::Error, INCONSISTENT).await,
        }
    }
    if o.get_str("validateMode") == Some("dataConsistencyAndMissingIndexKeysCheck") {
        indexes::note_missing_keys(node, ns, snapshot, &range).await?;
    }
    Ok(())
}
