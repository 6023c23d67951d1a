//! The index builds under way: who they are, how they are ended, and where a test can hold them.
//!
//! ```text
//! createIndexes   registers its build, with names and quorum, and begins with one index after the other
//! dropIndexes     ends the builds of the indexes it names, and waits until they have gone
//! drop            ends those of the collection
//! listIndexes     shows the indexes that have been begun beside those that are there
//! ```
//! A build that ends without its index fails with `Index build failed: <build>: Collection <ns> ( <uuid> ) :: caused by :: <why>`.

use super::commit_quorum::Quorum;
use crate::namespace::Slot;
use crate::{Node, Operation};
use document::error::INTERRUPTION;
use document::{Document, Error, Result, Value, doc, err, uuid};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::watch;

/// Where a build can be held, in the order in which it comes there. While one of them is set, a small collection is indexed as
/// a large one is: beside writes, step by step.
pub(super) mod points {
    pub(crate) const BEFORE_STARTING: &str = "hangCreateIndexesBeforeStartingIndexBuild";
    pub(crate) const SET_UP: [&str; 3] = [
        "hangAfterSettingUpIndexBuild",
        "hangAfterSettingUpIndexBuildUnlocked",
        "hangAfterInitializingIndexBuild",
    ];
    pub(crate) const STARTED: [&str; 1] = ["hangAfterStartingIndexBuild"];
    pub(crate) const SCANNED: [&str; 3] = [
        "hangAfterStartingIndexBuildUnlocked",
        "hangAfterIndexBuildDumpsInsertsFromBulk",
        "hangAfterIndexBuildDumpsInsertsFromBulkLock",
    ];
    pub(crate) const FIRST_DRAIN: [&str; 2] =
        ["hangAfterIndexBuildFirstDrain", "hangIndexBuildBeforeSignalPrimaryForCommitReadiness"];
    pub(crate) const SECOND_DRAIN: [&str; 2] =
        ["hangAfterIndexBuildSecondDrain", "hangIndexBuildBeforeCommit"];
    pub(crate) const FAIL_ON_COMMIT: &str = "failIndexBuildOnCommit";
    pub(crate) const BEFORE_CLEAN_UP: &str = "hangIndexBuildBeforeAbortCleanUp";

    pub(crate) fn all() -> impl Iterator<Item = &'static str> {
        let held = SET_UP.iter().chain(&STARTED).chain(&SCANNED).chain(&FIRST_DRAIN).chain(&SECOND_DRAIN);
        held.chain([&BEFORE_STARTING, &FAIL_ON_COMMIT, &BEFORE_CLEAN_UP]).copied()
    }
}

/// What `failIndexBuildOnCommit` fails with.
const FAILED_ON_COMMIT: i32 = 4_698_903;

/// The builds of a node that are under way, and how many were begun since the start.
#[derive(Default)]
pub struct IndexBuilds(Arc<Mutex<Vec<Arc<State>>>>, AtomicU64);

pub(super) struct State {
    id: [u8; 16],
    collection: [u8; 16],
    names: Vec<String>,
    /// The definitions of the indexes that have been begun.
    begun: Mutex<Vec<Document>>,
    quorum: watch::Sender<Quorum>,
    /// Why it must not go on.
    aborted: watch::Sender<Option<&'static str>>,
    gone: watch::Sender<bool>,
}

impl State {
    pub(super) fn quorum(&self) -> Quorum {
        self.quorum.borrow().clone()
    }
    pub(super) fn set_quorum(&self, quorum: Quorum) {
        self.quorum.send_replace(quorum);
    }
    fn abort(&self, why: &'static str) {
        self.aborted.send_replace(Some(why));
    }
}

/// A registered build.
pub struct Build {
    all: Arc<Mutex<Vec<Arc<State>>>>,
    state: Arc<State>,
    /// As of the beginning, so that the end of that reign is seen whenever it comes.
    reigns: watch::Receiver<u64>,
}

impl Drop for Build {
    fn drop(&mut self) {
        self.all.lock().retain(|state| !Arc::ptr_eq(state, &self.state));
        self.state.gone.send_replace(true);
    }
}

impl Build {
    /// # Errors
    /// IndexBuildAborted (276).
    pub(super) fn check(&self) -> Result<()> {
        self.state.aborted.borrow().map_or(Ok(()), |why| Err(aborted(why)))
    }
    /// Waits until somebody ends the build.
    pub(super) async fn ended(&self) -> Error {
        let mut aborted_by = self.state.aborted.subscribe();
        // The sender lives as long as the build.
        let why = aborted_by.wait_for(Option::is_some).await.ok().and_then(|why| *why);
        aborted(why.unwrap_or_default())
    }
    pub(super) fn quorum(&self) -> watch::Receiver<Quorum> {
        self.state.quorum.subscribe()
    }
    pub(super) fn reigns(&self) -> watch::Receiver<u64> {
        self.reigns.clone()
    }
    /// The index is now being built.
    pub(super) fn begin(&self, spec: Document) {
        self.state.begun.lock().push(spec);
    }
    /// The error that the client is told of a build that has begun: an interruption as it is, all else with the name of the build.
    pub(super) fn failed(&self, ns: &str, error: Error) -> Error {
        if error.is(INTERRUPTION) {
            return error;
        }
        let (id, collection) = (uuid::to_string(&self.state.id), uuid::to_string(&self.state.collection));
        error.context(format_args!("Index build failed: {id}: Collection {ns} ( {collection} )"))
    }
}

fn aborted(why: &str) -> Error {
    err!(INDEX_BUILD_ABORTED, "{why}")
}

impl IndexBuilds {
    pub(super) fn register(
        &self,
        id: [u8; 16],
        collection: [u8; 16],
        names: Vec<String>,
        quorum: Quorum,
        reigns: watch::Receiver<u64>,
    ) -> Build {
        let state = State {
            id,
            collection,
            names: sorted(names),
            begun: Mutex::default(),
            quorum: watch::Sender::new(quorum),
            aborted: watch::Sender::new(None),
            gone: watch::Sender::new(false),
        };
        let state = Arc::new(state);
        self.0.lock().push(state.clone());
        self.1.fetch_add(1, Relaxed);
        Build { all: self.0.clone(), state, reigns }
    }
    /// How many were begun since the start.
    pub fn total(&self) -> u64 {
        self.1.load(Relaxed)
    }
    /// Ends the builds of a collection that is gone.
    pub fn forget_dropped(&self, collection: [u8; 16]) {
        for state in self.0.lock().iter().filter(|s| s.collection == collection) {
            state.abort("collection dropped");
        }
    }
    /// Ends the build of the indexes of these names, if there is one that is not about to commit.
    pub fn abort(&self, collection: [u8; 16], names: Vec<String>) {
        if let Some(state) = self.find(collection, names) {
            state.abort("the index build is not wanted any more");
        }
    }
    pub(super) fn find(&self, collection: [u8; 16], names: Vec<String>) -> Option<Arc<State>> {
        let names = sorted(names);
        self.0.lock().iter().find(|s| s.collection == collection && s.names == names).cloned()
    }
    /// The indexes of a collection that have been begun and are not among `ready`: their definitions, and the builds' UUIDs.
    pub fn begun(&self, collection: [u8; 16], ready: &[&str]) -> Vec<(Document, [u8; 16])> {
        let all = self.0.lock();
        let of_it = all.iter().filter(|s| s.collection == collection);
        let begun =
            of_it.flat_map(|s| s.begun.lock().iter().map(|spec| (spec.clone(), s.id)).collect::<Vec<_>>());
        begun.filter(|(spec, _)| spec.get_str("name").is_none_or(|name| !ready.contains(&name))).collect()
    }

    /// Ends the builds that `dropIndexes` means by `index` and waits until they have gone. Returns the names of their indexes.
    pub(super) async fn drop_begun(
        &self,
        op: &Operation,
        collection: [u8; 16],
        index: &Value,
    ) -> Result<Vec<String>> {
        let meant: Vec<Arc<State>> = {
            let all = self.0.lock();
            let has_begun = |s: &&Arc<State>| s.collection == collection && !s.begun.lock().is_empty();
            all.iter().filter(has_begun).filter(|s| s.is_meant(index)).cloned().collect()
        };
        let mut names = Vec::new();
        for state in meant {
            state.abort("dropIndexes command");
            // The sender is in the state itself.
            let _ = op.interruptible(state.gone.subscribe().wait_for(|gone| *gone)).await?;
            names.extend(state.names.iter().cloned());
        }
        Ok(names)
    }
}

impl State {
    /// Whether all indexes of the build are among those that `index` names: by name, by `"*"`, by key pattern, by a list of names.
    fn is_meant(&self, index: &Value) -> bool {
        let named = |name: &String| match index {
            Value::String(s) => s == "*" || s == name,
            Value::Array(list) => list.iter().any(|v| v.as_str() == Some(name) || v.as_str() == Some("*")),
            Value::Document(pattern) => self.begun.lock().iter().any(|spec| {
                spec.get_str("name") == Some(name)
                    && spec.get_document("key").is_some_and(|key| is_same(key, pattern))
            }),
            _ => false,
        };
        self.names.iter().all(named)
    }
}

fn is_same(key: &Document, pattern: &Document) -> bool {
    document::compare::compare_docs(key.to_doc_buf().doc(), pattern.to_doc_buf().doc()).is_eq()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// What a build of one index is about.
pub(super) struct Stage<'a> {
    pub(super) node: &'a Node,
    pub(super) op: &'a Operation,
    pub(super) slot: &'a Slot,
    pub(super) build: &'a Build,
}

impl Stage<'_> {
    /// Whether a test wants to hold or to fail builds, so that even a small collection is indexed step by step.
    pub(super) fn is_watched(&self) -> bool {
        points::all().any(|name| self.node.failpoints.is_set(name))
    }

    /// Waits at those of the points that are set.
    ///
    /// # Errors
    /// Interrupts, IndexBuildAborted (276).
    pub(super) async fn pass(&self, names: &[&'static str]) -> Result<()> {
        for name in names {
            tokio::select! {
                passed = self.node.failpoints.pause_operation(self.op, name, &self.slot.ns) => passed?,
                error = self.build.ended() => {
                    self.op.set_paused_at(None);
                    return Err(error);
                }
            }
        }
        self.build.check()
    }

    /// # Errors
    /// What `failIndexBuildOnCommit` asks for.
    pub(super) fn may_commit(&self) -> Result<()> {
        let concerned = |data: &Document| crate::failpoints::concerns(data, &self.slot.ns);
        match self.node.failpoints.should_with(points::FAIL_ON_COMMIT, concerned) {
            Some(_) => Err(Error::new(FAILED_ON_COMMIT, "index build aborted due to failpoint")),
            None => self.build.check(),
        }
    }

    /// Shows in currentOp how far the scan has come.
    pub(super) fn show_scan(&self, done: u64, total: u64) {
        const SCANNING: &str = "Index Build: scanning collection";
        let share = (done * 100).checked_div(total).unwrap_or(100).min(100);
        let message = format!("{SCANNING} {SCANNING}: {done}/{total} {share}%");
        let progress = doc! { "done": done as i64, "total": total as i64 };
        self.op.show_progress(Some((message, Some(progress))));
    }
    pub(super) fn show_drain(&self) {
        self.op.show_progress(Some(("Index Build: draining writes received during build".to_string(), None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_a_fail_point_that_may_be_set() {
        for name in points::all() {
            assert!(crate::failpoints::NAMES.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_drop_means_builds_all_of_whose_indexes_it_names() {
        let builds = IndexBuilds::default();
        let reigns = watch::Sender::new(0).subscribe();
        let names = vec!["b_1".to_string(), "a_1".to_string()];
        let build = builds.register([1; 16], [2; 16], names, Quorum::NOBODY, reigns);
        build.begin(doc! { "key": { "a": 1 }, "name": "a_1" });
        let meant = |index: Value| build.state.is_meant(&index);
        assert!(meant("*".into()) && meant(Value::Array(vec!["a_1".into(), "b_1".into(), "c_1".into()])));
        assert!(!meant("a_1".into()) && !meant(Value::Document(doc! { "a": 1 })));
        assert_eq!(builds.begun([2; 16], &[]).len(), 1);
        assert!(builds.begun([2; 16], &["a_1"]).is_empty() && builds.begun([3; 16], &[]).is_empty());
    }
}
