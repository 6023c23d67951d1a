//! Writes on a node whose ranges move, and commits that must be all or nothing.

use crate::namespace::{Access, Learner, OwnershipFilter, Placement, Refusal};
use crate::operation::{NO_USER, ReadConcern, ReadLevel, Received, SessionFields, SessionId};
use crate::replication::testing;
use crate::{BatchWrite, Node, NodeOptions, Operation, Request};
use document::{Doc, Document, ObjectId, Timestamp, Value, codes, doc, err};
use futures::future::BoxFuture;
use protocol::version::ShardVersion;
use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use storage::CollectionView;
use storage::files::{File, FileLock, Files, LockError, MemoryFiles};
use storage::log::{Clock, LogOptions, RealClock, SyncPolicy};

const NS: &str = "d.c";

fn version() -> ShardVersion {
    ShardVersion::new(ObjectId([1; 12]), Timestamp::new(1, 0), 1, 0)
}

/// Sharded at [`version`] until it was asked so often about a write, then at a newer one.
struct Moving {
    writes_left: AtomicUsize,
}
impl Placement for Moving {
    fn check(&self, received: &Received, access: Access) -> Result<(), Refusal> {
        if access == Access::Read || received.shard != Some(version()) {
            return Ok(());
        }
        let left = self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        left.map(drop).map_err(|_| Refusal::Stale(err!(STALE_CONFIG, "moved on")))
    }
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>> {
        Some(Arc::new(All))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
struct All;
impl OwnershipFilter for All {
    fn owns(&self, _doc: Doc<'_>) -> bool {
        true
    }
    fn paths(&self) -> Vec<String> {
        vec!["_id".to_string()]
    }
    fn document_key(&self, doc: Doc<'_>) -> document::DocBuf {
        document::DocWriter::build(|w| doc.element("_id").iter().for_each(|id| w.element(id)))
    }
}

fn routed() -> Operation {
    let mut op = Operation::internal();
    op.received.shard = Some(version());
    op
}
fn place(node: &Node, writes: usize) {
    let placement = Moving { writes_left: AtomicUsize::new(writes) };
    node.namespaces.slot(NS).write_unchecked().placement = Some(Arc::new(placement));
}
pub(super) async fn run(node: &Node, op: &Operation, command: Document) -> document::Result<Document> {
    let body = command.to_doc_buf();
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    match request.name() {
        "insert" => super::insert::insert(node, op, request).await,
        "update" => super::update::update(node, op, request).await,
        "findAndModify" => super::find_and_modify::find_and_modify(node, op, request).await,
        _ => super::delete::delete(node, op, request).await,
    }
}
fn documents(n: i32) -> Document {
    doc! { "insert": "c", "documents": (0..n).map(|i| doc! { "_id": i, "n": 0 }).collect::<Vec<_>>() }
}
pub(super) fn code_of(reply: &Document) -> Option<i64> {
    reply.get_array("writeErrors")?.first()?.as_document()?.get_i64("code")
}

#[tokio::test]
async fn an_update_of_many_that_a_newer_version_overtakes_is_not_refused_half_way() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(2000)).await.unwrap();
    place(&node, 1);
    let update =
        doc! { "update": "c", "updates": vec![doc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }] };
    let reply = run(&node, &routed(), update).await.unwrap();
    // Refused half-way it would come again from its router, and find what it has updated already.
    assert_eq!((code_of(&reply), reply.get_i64("n")), (None, Some(2000)), "{reply:?}");
    let all = crate::local::LocalClient::new(node.clone()).find(NS, &doc! {}).unwrap();
    assert!(all.iter().all(|d| d.get_i64("n") == Some(1)));
    place(&node, 1);
    let delete = doc! { "delete": "c", "deletes": vec![doc! { "q": {}, "limit": 0 }] };
    assert_eq!(run(&node, &routed(), delete).await.unwrap().get_i64("n"), Some(2000));
}

/// In a critical section that lets reads pass; when it ends, ranges have left.
struct Leaving(tokio::sync::watch::Sender<bool>);
impl Placement for Leaving {
    fn check(&self, received: &Received, access: Access) -> Result<(), Refusal> {
        match (*self.0.borrow(), access) {
            (false, Access::Write) => Err(Refusal::CriticalSection(self.0.subscribe())),
            (true, _) if received.shard == Some(version()) => {
                Err(Refusal::Stale(err!(STALE_CONFIG, "a range has left")))
            }
            _ => Ok(()),
        }
    }
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>> {
        Some(Arc::new(All))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[tokio::test]
async fn an_update_of_many_that_meets_a_leaving_range_is_refused_before_it_begins() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(10)).await.unwrap();
    let ended = tokio::sync::watch::Sender::new(false);
    node.namespaces.slot(NS).write_unchecked().placement = Some(Arc::new(Leaving(ended.clone())));
    let update =
        doc! { "update": "c", "updates": vec![doc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }] };
    let op = routed();
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ended.send_replace(true);
    };
    let (reply, ()) = tokio::join!(run(&node, &op, update), end);
    let reply = reply.unwrap();
    assert_eq!((code_of(&reply), reply.get_i64("n")), (Some(i64::from(codes::STALE_CONFIG)), Some(0)));
}

#[tokio::test]
async fn no_range_leaves_while_many_documents_are_written() {
    let node = testing::node(None);
    let slot = node.namespaces.slot(NS);
    let kept = slot.keep_ranges(&Operation::internal()).await.unwrap();
    let refused = slot.let_ranges_go(Duration::from_millis(10)).await.unwrap_err();
    assert_eq!(refused.code, codes::LOCK_TIMEOUT);
    drop(kept);
    let leaving = slot.let_ranges_go(Duration::from_millis(10)).await.unwrap();
    let op = Operation::internal();
    let waiting = tokio::time::timeout(Duration::from_millis(10), slot.keep_ranges(&op));
    assert!(waiting.await.is_err());
    drop(leaving);
}

#[tokio::test]
async fn a_routed_insert_does_not_make_a_sharded_collection() {
    let node = testing::node(None);
    place(&node, 10);
    let reply = run(&node, &routed(), documents(1)).await.unwrap();
    assert_eq!(code_of(&reply), Some(i64::from(codes::STALE_CONFIG)));
    let upsert = doc! { "q": { "_id": 1 }, "u": { "$set": { "n": 1 } }, "upsert": true };
    let reply = run(&node, &routed(), doc! { "update": "c", "updates": vec![upsert] }).await.unwrap();
    assert_eq!(code_of(&reply), Some(i64::from(codes::STALE_CONFIG)));
    assert!(node.namespaces.slot(NS).read_unchecked().collection.is_none());
}

#[tokio::test]
async fn a_repeated_upsert_that_a_router_made_by_an_insert_shows_the_same_document() {
    let node = testing::node(None);
    let op = || {
        let mut op = Operation::internal();
        op.session = Some(SessionFields {
            lsid: SessionId::of_client([1; 16], NO_USER),
            txn_number: Some(1),
            autocommit: None,
            start_transaction: false,
            stmt_ids: vec![0],
        });
        op
    };
    run(&node, &op(), documents(1)).await.unwrap();
    let never = doc! { "_id": { "$in": Vec::<Document>::new() } };
    for (new, shown) in [(true, Some(doc! { "_id": 0, "n": 0 })), (false, None)] {
        let again = doc! { "findAndModify": "c", "query": never.clone(), "update": { "$set": { "n": 0 } }, "new": new };
        let reply = run(&node, &op(), again).await.unwrap();
        assert_eq!(reply.get_document("value"), shown.as_ref(), "{reply:?}");
        assert_eq!(reply.get_i64("retriedStmtId"), Some(0));
    }
}

/// Sharded meanwhile: whoever believes that it is not is refused.
struct Sharded;
impl Placement for Sharded {
    fn check(&self, received: &Received, _access: Access) -> Result<(), Refusal> {
        match received.shard {
            Some(ShardVersion::UNTRACKED) => Err(Refusal::Stale(err!(STALE_CONFIG, "it is sharded"))),
            _ => Ok(()),
        }
    }
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>> {
        Some(Arc::new(All))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[tokio::test]
async fn a_routed_pipeline_does_not_write_where_a_collection_was_sharded_meanwhile() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(3)).await.unwrap();
    let pipeline = async |stage: Document, version: Option<ShardVersion>| {
        let mut op = Operation::internal();
        op.received.shard = version;
        let body = doc! { "aggregate": "c", "pipeline": vec![stage], "cursor": {} }.to_doc_buf();
        let request = Request { db: "d", body: body.doc(), sequences: &[] };
        let mut reply = vec![0; 4];
        let mut w = document::DocWriter::resume(&mut reply);
        crate::read::aggregate::aggregate(&node, &Arc::new(op), request, &mut w).await
    };
    let target = node.namespaces.slot("d.t");
    for stage in [doc! { "$merge": "t" }, doc! { "$out": "t" }] {
        target.write_unchecked().placement = Some(Arc::new(Sharded));
        let refused = pipeline(stage.clone(), Some(ShardVersion::UNTRACKED)).await.unwrap_err();
        assert_eq!(refused.code, codes::STALE_CONFIG);
        assert!(target.read_unchecked().collection.is_none());
        target.write_unchecked().placement = None;
        pipeline(stage, Some(ShardVersion::UNTRACKED)).await.unwrap();
        assert_eq!(target.write_unchecked().uninstall().unwrap().len(), 3);
    }
    let left: Vec<String> = node.namespaces.all().iter().map(|s| s.ns.clone()).collect();
    let temporary = left.iter().filter(|ns| ns.contains("tmp.agg_out"));
    assert!(temporary.into_iter().all(|ns| node.namespaces.slot(ns).read_unchecked().collection.is_none()));
}

#[tokio::test]
async fn a_batch_too_large_for_the_log_changes_nothing() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    let pad = "x".repeat(15 << 20);
    let write =
        |i: i32| BatchWrite::Insert { ns: NS.to_string(), doc: doc! { "_id": i, "pad": pad.as_str() } };
    let writes: Vec<BatchWrite> = (10..15).map(write).collect();
    let before = node.log.appended();
    let refused = node.commit_batch(&Operation::internal(), &writes).await.unwrap_err();
    assert_eq!(refused.code, codes::TRANSACTION_TOO_LARGE);
    assert_eq!(node.log.appended(), before);
    assert_eq!(node.namespaces.slot(NS).read_unchecked().collection.as_ref().unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_leaves_fields_that_others_have_written_since() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    let only = |node: &Node| {
        let slot = node.namespaces.slot(NS);
        let state = slot.read_unchecked();
        state.collection.as_ref().unwrap().records().first().unwrap().1.to_document()
    };
    let before = only(&node);
    let id = before.get("_id").cloned();
    let commit = async |write: BatchWrite| {
        node.commit_batch(&Operation::internal(), &[write]).await.unwrap();
        only(&node)
    };
    let put = |doc: Document| BatchWrite::Put { ns: NS.to_string(), doc };
    let change = |before: Document, after: Document| BatchWrite::Change { ns: NS.to_string(), before, after };
    let read = commit(put(doc! { "_id": id.clone(), "a": 1, "b": 1, "gone": 1 })).await;
    // Somebody writes while the one that has read it makes up its mind.
    commit(put(doc! { "_id": id.clone(), "a": 1, "b": 2, "gone": 1, "c": 1 })).await;
    let after = doc! { "_id": id.clone(), "a": 2, "b": 1, "d": 1 };
    let expected = doc! { "_id": id.clone(), "a": 2, "b": 2, "c": 1, "d": 1 };
    assert_eq!(commit(change(read.clone(), after.clone())).await, expected);
    let deleted = BatchWrite::Delete { ns: NS.to_string(), id: id.unwrap_or(Value::Null) };
    node.commit_batch(&Operation::internal(), &[deleted]).await.unwrap();
    assert_eq!(commit(change(read, after.clone())).await, after);
    // Under another `_id` it is the same.
    let mut there = after.clone();
    there.push("c", 7);
    commit(put(there)).await;
    let moved = doc! { "_id": "other", "a": 3, "b": 1, "d": 1 };
    assert_eq!(commit(change(after, moved)).await, doc! { "_id": "other", "a": 3, "b": 1, "d": 1, "c": 7 });
    assert_eq!(node.namespaces.slot(NS).read_unchecked().collection.as_ref().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_majority_read_has_read_is_durable_when_it_is_answered() {
    let node = testing::open(Some("rs"), &MemoryFiles::default(), never_synced);
    let mut op = Operation::internal();
    op.read_concern = ReadConcern { given: true, level: ReadLevel::Majority, ..op.read_concern };
    node.await_read_concern(&op).await.unwrap();
    // Written while the read runs, and read by it.
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    assert!(node.log.durable() < node.log.appended());
    node.await_read_committed(&op).await.unwrap();
    assert_eq!(node.log.durable(), node.log.appended());
}

#[tokio::test]
async fn the_time_of_a_write_is_its_own_and_that_of_a_read_is_of_what_it_can_have_read() {
    let node = testing::open(Some("rs"), &MemoryFiles::default(), never_synced);
    let (first, second) = (Operation::internal(), Operation::internal());
    run(&node, &first, documents(1)).await.unwrap();
    let written = node.log.last_optime();
    node.log.wait_durable(node.log.appended()).await.unwrap();
    let command = doc! { "insert": "c", "documents": [{ "_id": "later" }] };
    run(&node, &second, command).await.unwrap();
    let last = node.log.last_optime();
    assert!(last.ts > written.ts);
    assert_eq!(node.operation_time(&first).as_u64(), written.ts);
    assert_eq!(node.operation_time(&second).as_u64(), last.ts);
    let mut op = Operation::internal();
    assert_eq!(node.operation_time(&op).as_u64(), last.ts);
    op.read_concern =
        ReadConcern { given: true, level_given: true, level: ReadLevel::Majority, ..op.read_concern };
    assert_eq!(node.operation_time(&op).as_u64(), written.ts);
}

#[tokio::test]
async fn a_majority_read_that_a_rollback_overtook_is_not_answered() {
    let node = testing::node(Some("rs"));
    node.initiate(testing::config()).await.unwrap();
    let reading = |level: ReadLevel| {
        let mut op = Operation::internal();
        op.read_concern = ReadConcern { given: true, level, ..op.read_concern };
        op
    };
    for level in [ReadLevel::Majority, ReadLevel::Snapshot, ReadLevel::Local] {
        let op = reading(level);
        node.read_at_one_moment(&op, || Some(vec![NS.to_string()])).await.unwrap();
        node.await_read_committed(&op).await.unwrap();
        node.past.replace();
        let answered = node.await_read_committed(&op).await.map_err(|e| e.code);
        let expected = match level {
            ReadLevel::Local => Ok(()),
            _ => Err(codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE),
        };
        assert_eq!(answered, expected, "{level:?}");
    }
}

#[tokio::test]
async fn a_rollback_ends_the_wait_for_a_time_that_it_took_back() {
    let node = testing::node(Some("rs"));
    node.initiate(testing::config()).await.unwrap();
    node.replication.commit.set_shared(true);
    for level in [ReadLevel::Majority, ReadLevel::Snapshot] {
        let mut op = Operation::internal();
        let after = Some(Timestamp::from_u64(node.log.last_ts() + 1000));
        node.log.advance_clock(node.log.last_ts() + 1000);
        op.read_concern = ReadConcern {
            given: true,
            level_given: true,
            level,
            after_cluster_time: after,
            ..op.read_concern
        };
        let reading = node.read_at_one_moment(&op, || Some(vec![NS.to_string()]));
        let rollback = async {
            tokio::task::yield_now().await;
            node.past.replace();
        };
        let (read, ()) = tokio::join!(reading, rollback);
        assert_eq!(read.map_err(|e| e.code), Err(codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE), "{level:?}");
    }
}

/// Knows of a range that came here once it has learnt of it.
#[derive(Clone)]
struct Learning(Arc<AtomicBool>);
impl Placement for Learning {
    fn check(&self, _received: &Received, _access: Access) -> Result<(), Refusal> {
        match self.0.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(Refusal::Stale(err!(STALE_CONFIG, "a range has come"))),
        }
    }
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>> {
        Some(Arc::new(All))
    }
    fn came_after(&self, _time: Timestamp) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
impl Learner for Learning {
    fn learn<'a>(&'a self, _stale: &'a document::Error) -> BoxFuture<'a, ()> {
        Box::pin(async { self.0.store(true, Ordering::SeqCst) })
    }
    fn recover<'a>(&'a self, _unknown: &'a document::Error) -> BoxFuture<'a, document::Result<bool>> {
        Box::pin(async { Ok(false) })
    }
}

fn never_synced(options: &mut LogOptions) {
    options.sync = SyncPolicy::Group { interval: Duration::from_secs(3600) };
}

/// It would be refused when it comes to read.
#[tokio::test]
async fn a_majority_read_learns_what_came_here_before_it_reads_the_past() {
    let node = testing::open(Some("rs"), &MemoryFiles::default(), never_synced);
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    node.remember(Duration::from_secs(60)).await;
    node.replication.commit.set_shared(true);
    node.replication.commit.advance(node.log.last_optime());
    run(&node, &Operation::internal(), doc! { "delete": "c", "deletes": vec![doc! { "q": {}, "limit": 1 }] })
        .await
        .unwrap();
    for (learns, reads_the_past) in [(false, true), (true, false)] {
        if learns {
            let learning = Learning(Arc::default());
            node.namespaces.slot(NS).write_unchecked().placement = Some(Arc::new(learning.clone()));
            node.namespaces.set_learner(Arc::new(learning));
        }
        let mut op = routed();
        op.read_concern =
            ReadConcern { given: true, level_given: true, level: ReadLevel::Majority, ..op.read_concern };
        node.read_at_one_moment(&op, || Some(vec![NS.to_string()])).await.unwrap();
        assert_eq!(op.transaction().is_some(), reads_the_past);
    }
}

#[tokio::test]
async fn a_read_that_names_no_level_has_that_of_the_default() {
    let node = testing::open(Some("rs"), &MemoryFiles::default(), never_synced);
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    let op = Operation::internal();
    node.await_read_concern(&op).await.unwrap();
    assert!(node.log.durable() < node.log.appended());
    node.replication.set_default_read_level(Some(ReadLevel::Majority));
    node.await_read_concern(&op).await.unwrap();
    assert_eq!(node.log.durable(), node.log.appended());
}

#[tokio::test]
async fn a_read_that_waits_for_a_time_without_an_entry_writes_one() {
    let node = testing::node(Some("rs"));
    node.initiate(testing::config()).await.unwrap();
    let later = Timestamp::from_u64(node.log.last_ts() + 1000);
    node.log.advance_clock(later.as_u64());
    let mut op = Operation::internal();
    op.read_concern = ReadConcern { given: true, after_cluster_time: Some(later), ..op.read_concern };
    node.await_read_concern(&op).await.unwrap();
    assert!(node.log.last_optime().ts >= later.as_u64());
}

/// Shows a time that a test sets, and counts how often it is asked.
struct Counting {
    now_ms: AtomicI64,
    asked: AtomicUsize,
}
impl Clock for Counting {
    fn now_millis(&self) -> i64 {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.now_ms.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_validator_reads_the_clock_once_in_a_commit() {
    let clock = Arc::new(Counting { now_ms: AtomicI64::new(1000), asked: AtomicUsize::new(0) });
    let options = NodeOptions {
        files: Arc::new(MemoryFiles::default()),
        dir: "/data".into(),
        log: LogOptions { in_memory: true, clock: clock.clone(), ..LogOptions::default() },
        clock: clock.clone(),
        replica_set: None,
        host: "h:1".to_string(),
    };
    let node = Node::open(options).unwrap().node;
    let past = doc! { "$expr": { "$lte": ["$at", "$$NOW"] } };
    let command = doc! { "create": "c", "validator": { "$or": [{ "free": true }, past] } };
    let body = command.to_doc_buf();
    let create = Request { db: "d", body: body.doc(), sequences: &[] };
    let op = Operation::internal();
    crate::ddl::collections::create(&node, &op, create).await.unwrap();
    let slot = node.namespaces.slot(NS);
    let accepted = async |at: i64| {
        let at = doc! { "_id": 1, "at": document::Value::DateTime(at) }.to_doc_buf();
        let checked = node.write(&op, &slot, |unit| {
            let before = clock.asked.load(Ordering::SeqCst);
            let valid = (0..50).filter(|_| unit.check_validator(at.doc()).is_ok()).count();
            Ok((valid, clock.asked.load(Ordering::SeqCst) - before))
        });
        checked.await.unwrap().0
    };
    assert_eq!(accepted(1000).await, (50, 1));
    assert_eq!(accepted(5000).await, (0, 1));
    clock.now_ms.store(5000, Ordering::SeqCst);
    assert_eq!(accepted(5000).await, (50, 1));
}

/// A disk that takes no bytes while it is held.
#[derive(Clone, Default)]
struct Disk {
    files: MemoryFiles,
    held: Arc<AtomicBool>,
}
struct OnDisk {
    file: Arc<dyn File>,
    held: Arc<AtomicBool>,
}
impl File for OnDisk {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        while self.held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.file.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
    fn preallocate(&self, length: u64) -> io::Result<()> {
        self.file.preallocate(length)
    }
}
impl Disk {
    fn file(&self, file: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        file.map(|file| Arc::new(OnDisk { file, held: self.held.clone() }) as Arc<dyn File>)
    }
}
impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.file(self.files.open(path))
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.file(self.files.create(path))
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir_all(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.files.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> Result<FileLock, LockError> {
        self.files.lock(path)
    }
}

/// A node over `disk` whose log takes hardly anything that is not written yet.
fn over(disk: &Disk) -> Arc<Node> {
    let log = LogOptions { sync: SyncPolicy::Never, buffer_bytes: 10_000, ..LogOptions::default() };
    let options = NodeOptions {
        files: Arc::new(disk.clone()),
        dir: PathBuf::from("/data"),
        log,
        clock: Arc::new(RealClock),
        replica_set: Some("rs".to_string()),
        host: "h:1".to_string(),
    };
    Node::open(options).unwrap().node
}

/// An operation that has 100 ms.
fn hurried() -> Operation {
    let mut op = Operation::internal();
    op.deadline = Some(runtime::Instant::now() + Duration::from_millis(100));
    op
}

/// Inserts until that is refused; the code.
async fn fill(node: &Arc<Node>) -> i32 {
    for i in 1.. {
        let command = doc! { "insert": "c", "documents": [{ "_id": i, "s": "x".repeat(4000) }] };
        if let Err(e) = run(node, &hurried(), command).await {
            return e.code;
        }
    }
    0
}

#[tokio::test]
async fn a_write_waits_for_a_slow_disk_no_longer_than_its_time() {
    let disk = Disk::default();
    let node = over(&disk);
    run(&node, &Operation::internal(), documents(1)).await.unwrap();
    disk.held.store(true, Ordering::SeqCst);
    let ended = tokio::time::timeout(Duration::from_secs(30), fill(&node)).await;
    disk.held.store(false, Ordering::SeqCst);
    assert_eq!(ended, Ok(codes::MAX_TIME_MS_EXPIRED));
    let command = doc! { "insert": "c", "documents": [{ "_id": "after" }] };
    run(&node, &Operation::internal(), command).await.unwrap();
}

#[tokio::test]
async fn a_commit_over_many_namespaces_waits_for_a_slow_disk_no_longer_than_its_time() {
    let disk = Disk::default();
    let node = over(&disk);
    disk.held.store(true, Ordering::SeqCst);
    let commits = async {
        assert_eq!(fill(&node).await, codes::MAX_TIME_MS_EXPIRED);
        let wide = node.write_wide(&hurried(), &[], |_| Ok(())).await.map(drop);
        let noting = node.write_wide_noting(&hurried(), |_| Ok(()), |(), _| ()).await.map(drop);
        let nothing = || Ok((BTreeSet::new(), ()));
        let alone = node.write_alone(&hurried(), nothing, |_, ()| Ok(())).await.map(drop);
        [wide, noting, alone].map(|done| done.err().map(|e| e.code))
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), commits).await;
    disk.held.store(false, Ordering::SeqCst);
    assert_eq!(ended, Ok([Some(codes::MAX_TIME_MS_EXPIRED); 3]));
}

/// Runs `hold` in a thread: it calls what it is given when it holds something, and that returns when the sender is dropped.
fn elsewhere(hold: impl FnOnce(&dyn Fn()) + Send + 'static) -> mpsc::Sender<()> {
    let ((holds, held), (release, released)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        hold(&|| {
            holds.send(()).expect("it is waited for");
            // A test that fails ends all the same.
            let _ = released.recv_timeout(Duration::from_secs(5));
        });
    });
    held.recv().expect("it holds something");
    release
}

/// Polls `waits` as often as it takes to have been passed over, then kills its operation; the code it ends with.
async fn killed<T>(op: &Operation, waits: impl Future<Output = document::Result<T>>) -> Option<i32> {
    let mut waits = std::pin::pin!(waits);
    for _ in 0..50 {
        assert!(futures::poll!(waits.as_mut()).is_pending());
    }
    op.kill(codes::INTERRUPTED);
    waits.await.err().map(|e| e.code)
}

#[tokio::test]
async fn what_waits_for_a_commit_under_way_leaves_its_worker_to_others_and_can_be_killed() {
    let node = testing::node(None);
    let gate = node.clone();
    let release = elsewhere(move |wait| {
        let _gate = gate.gate.read();
        wait();
    });
    let op = Operation::internal();
    assert_eq!(killed(&op, node.snapshot(&op)).await, Some(codes::INTERRUPTED));
    drop(release);
    let slot = node.namespaces.slot(NS);
    let latch = slot.clone();
    let release = elsewhere(move |wait| {
        let _latch = latch.read_unchecked();
        wait();
    });
    let (op, slots) = (Operation::internal(), [node.namespaces.slot("d.b"), slot]);
    assert_eq!(killed(&op, node.write_wide(&op, &slots, |_| Ok(()))).await, Some(codes::INTERRUPTED));
    drop(release);
    node.write_wide(&Operation::internal(), &slots, |_| Ok(())).await.unwrap();
    node.snapshot(&Operation::internal()).await.unwrap();
}

#[tokio::test]
async fn a_command_of_many_point_statements_lets_others_run_between_them_and_can_be_killed() {
    let node = testing::node(None);
    run(&node, &Operation::internal(), documents(10)).await.unwrap();
    let q = |i: i32| doc! { "_id": i % 10 };
    let updates: Vec<Document> = (0..20_000).map(|i| doc! { "q": q(i), "u": { "n": i } }).collect();
    let deletes: Vec<Document> = (0..20_000).map(|i| doc! { "q": q(i), "limit": 1 }).collect();
    for body in [doc! { "update": "c", "updates": updates }, doc! { "delete": "c", "deletes": deletes }] {
        let op = Operation::internal();
        assert_eq!(killed(&op, run(&node, &op, body)).await, Some(codes::INTERRUPTED));
    }
}

#[test]
fn of_many_messages_the_first_are_shown() {
    let mut outcome = super::statement::Outcome::default();
    let long = document::Error::new(2, "ä".repeat(1 << 20));
    (0..3).for_each(|index| outcome.fail(index, &long));
    let reply = outcome.reply(true);
    let shown =
        reply.get_array("writeErrors").unwrap().iter().filter_map(|e| e.as_document()?.get_str("errmsg"));
    assert_eq!(shown.map(str::len).collect::<Vec<_>>(), [1 << 20, 0, 0]);
    let mut messages = super::statement::Messages::default();
    let half = document::Error::new(2, "x".repeat(600 << 10));
    assert_eq!([(); 3].map(|()| messages.take(&half).len()), [600 << 10, 600 << 10, 0]);
}

#[tokio::test]
async fn an_operation_says_that_it_waits_for_a_lock() {
    let node = testing::node(None);
    let (op, slot) = (Operation::internal(), node.namespaces.slot(NS));
    let held = slot.intent_shared(Duration::from_secs(5)).await.unwrap();
    let mut waits = Box::pin(op.locking(slot.intent_exclusive(Duration::from_secs(5), "a", Vec::new)));
    assert!(futures::poll!(waits.as_mut()).is_pending());
    assert!(op.waits_for_lock());
    drop(held);
    waits.await.unwrap().unwrap();
    assert!(!op.waits_for_lock());
}
