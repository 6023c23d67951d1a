//! Transactions as the dispatcher runs them, on a set of one and after its restart.

use super::{Admitted, Decision, Limits};
use crate::local::LocalClient;
use crate::operation::{ClientInfo, Operation};
use crate::past::Moment;
use crate::replication::testing;
use crate::snapshots::NodeSnapshot;
use crate::{Node, Request, ddl, write};
use document::{DocBuf, Document, Result, Timestamp, Value, codes, doc};
use protocol::transaction::Request as Wanted;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::CollectionView;
use storage::files::MemoryFiles;
use storage::log::ReadFrom;

const LIMITS: Limits = Limits {
    lifetime: Duration::from_secs(60),
    lock_timeout: Some(Duration::from_millis(5)),
    section_timeout: Duration::from_millis(500),
    bytes_max: u64::MAX,
    may_restart: false,
};

fn operation(body: &DocBuf) -> Arc<Operation> {
    Arc::new(Operation::parse(1, Arc::new(ClientInfo::default()), body.doc()).unwrap())
}
async fn run(node: &Arc<Node>, op: &Operation, body: &DocBuf) -> Result<Document> {
    let r = Request { db: "t", body: body.doc(), sequences: &[] };
    let reading = op.transaction().cloned();
    match r.name() {
        "insert" => write::insert::insert(node, op, r).await,
        "update" => write::update::update(node, op, r).await,
        "delete" => write::delete::delete(node, op, r).await,
        "create" => ddl::collections::create(node, op, r).await,
        "createIndexes" => ddl::indexes::create_indexes(node, op, r).await,
        "dropIndexes" => ddl::indexes::drop_indexes(node, op, r).await,
        "find" => {
            let op = Arc::new(Operation::internal());
            reading.iter().for_each(|t| op.join(t.clone()));
            let mut out = vec![0; 4];
            crate::read::find::find(node, &op, r, &mut document::DocWriter::resume(&mut out)).await?;
            out.push(0);
            let length = out.len() as u32;
            out[..4].copy_from_slice(&length.to_le_bytes());
            Ok(DocBuf::from_validated(out).to_document())
        }
        other => panic!("no {other} here"),
    }
}

/// A client's session with its transactions.
struct Client {
    node: Arc<Node>,
    id: u8,
    number: i64,
    started: bool,
    /// The number of the retryable write that it executes as a router does, and which attempt it is.
    write: Option<(i64, u8)>,
}
impl Client {
    fn new(node: &Arc<Node>, id: u8) -> Client {
        Client { node: node.clone(), id, number: 0, started: false, write: None }
    }
    /// A router that executes the write `number` of session `id` for the `attempt`-th time.
    fn router(node: &Arc<Node>, id: u8, number: i64, attempt: u8) -> Client {
        Client { write: Some((number, attempt)), ..Client::new(node, id) }
    }
    fn begin(&mut self) -> &mut Client {
        self.number += 1;
        self.started = false;
        self
    }
    fn body(&self, mut command: Document) -> DocBuf {
        let mut lsid = doc! { "id": Value::uuid([self.id; 16]) };
        if let Some((number, attempt)) = self.write {
            lsid.push("txnNumber", number);
            lsid.push("txnUUID", Value::uuid([attempt; 16]));
            command.push("stmtIds", vec![Value::Int32(0)]);
        }
        command.push("lsid", lsid);
        command.push("txnNumber", self.number);
        command.push("autocommit", false);
        command.to_doc_buf()
    }
    async fn run(&mut self, command: Document) -> Result<Document> {
        let body = self.body(command);
        let op = operation(&body);
        let wanted = match self.started {
            false => Wanted::Start { may_restart: false },
            true => Wanted::Continue,
        };
        self.started = true;
        let Admitted::Run(entered) = self.node.enter_transaction(&op, wanted, LIMITS).await? else {
            panic!("no repetition")
        };
        let done = run(&self.node, &op, &body).await;
        entered.leave(done.is_ok());
        done
    }
    async fn commit(&self) -> Result<()> {
        let body = self.body(doc! { "commitTransaction": 1 });
        self.node.commit_transaction(&operation(&body), None, LIMITS).await
    }
    async fn abort(&self) -> Result<()> {
        let body = self.body(doc! { "abortTransaction": 1 });
        self.node.abort_transaction(&operation(&body), LIMITS).await
    }
    async fn prepare(&self) -> Result<Timestamp> {
        let body = self.body(doc! { "prepareTransaction": 1 });
        self.node.prepare_transaction(&operation(&body), LIMITS).await
    }
    /// One whose transaction has changed `{_id: 1}` of `c`, which it makes, and is prepared; with the time of that.
    async fn prepared(node: &Arc<Node>) -> (Client, Timestamp) {
        plain(node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
        let mut client = Client::new(node, 1);
        client.begin().run(set(1, 1)).await.unwrap();
        let at = client.prepare().await.unwrap();
        (client, at)
    }
    async fn found(&mut self, command: Document) -> Vec<Document> {
        let reply = self.run(command).await.unwrap();
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        batch.into_iter().filter_map(|v| v.as_document().cloned()).collect()
    }
}

async fn plain(node: &Arc<Node>, command: Document) -> Result<Document> {
    let body = command.to_doc_buf();
    run(node, &operation(&body), &body).await
}
fn all(node: &Arc<Node>, ns: &str) -> Vec<Document> {
    LocalClient::new(node.clone()).find(ns, &doc! {}).unwrap()
}
fn code<T>(result: Result<T>) -> i32 {
    result.err().map_or(0, |e| e.code)
}
fn insert(ns: &str, d: Document) -> Document {
    doc! { "insert": ns, "documents": [d] }
}
fn set(id: i32, x: i32) -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "x": x } } }] }
}

#[tokio::test]
async fn a_transaction_reads_its_writes_by_every_index_and_others_do_not() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 1})).await.unwrap();
    plain(&node, doc! {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 5)).await.unwrap();
    a.run(insert("c", doc! {"_id": 2, "x": 5})).await.unwrap();
    let by_index = doc! {"find": "c", "filter": {"x": 5}, "hint": "x_1"};
    assert_eq!(a.found(by_index).await.len(), 2);
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
    a.commit().await.unwrap();
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 5}, doc! {"_id": 2, "x": 5}]);
    assert!(node.transactions.locks.is_empty());
    // A repeated commit is what the first was.
    a.commit().await.unwrap();
    assert_eq!(code(a.abort().await), codes::TRANSACTION_COMMITTED);
}

#[tokio::test]
async fn two_collections_are_seen_as_of_the_first_statement() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1})).await.unwrap();
    plain(&node, insert("d", doc! {"_id": 1})).await.unwrap();
    let mut a = Client::new(&node, 1);
    assert_eq!(a.begin().found(doc! {"find": "c"}).await.len(), 1);
    plain(&node, insert("c", doc! {"_id": 2})).await.unwrap();
    plain(&node, insert("d", doc! {"_id": 2})).await.unwrap();
    assert_eq!(a.found(doc! {"find": "d"}).await.len(), 1);
    assert_eq!(a.found(doc! {"find": "c"}).await.len(), 1);
    a.commit().await.unwrap();
    assert_eq!(node.snapshots.kept(), 0);
}

#[tokio::test]
async fn the_first_updater_wins_and_the_second_transaction_fails_at_once() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let (mut a, mut b) = (Client::new(&node, 1), Client::new(&node, 2));
    a.begin().run(set(1, 1)).await.unwrap();
    assert_eq!(code(b.begin().run(set(1, 2)).await), codes::WRITE_CONFLICT);
    assert_eq!(code(b.commit().await), codes::NO_SUCH_TRANSACTION);
    a.commit().await.unwrap();
    // What was committed after the snapshot was taken conflicts as well.
    b.begin().run(doc! {"find": "c"}).await.unwrap();
    plain(&node, set(1, 3)).await.unwrap();
    assert_eq!(code(b.run(set(1, 4)).await), codes::WRITE_CONFLICT);
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 3}]);
    assert!(node.transactions.locks.is_empty());
}

#[tokio::test]
async fn unique_keys_conflict_like_records() {
    let node = testing::node(Some("rs"));
    plain(&node, doc! {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})
        .await
        .unwrap();
    let (mut a, mut b) = (Client::new(&node, 1), Client::new(&node, 2));
    a.begin().run(insert("c", doc! {"_id": 1, "x": 7})).await.unwrap();
    assert_eq!(code(b.begin().run(insert("c", doc! {"_id": 2, "x": 7})).await), codes::WRITE_CONFLICT);
    a.abort().await.unwrap();
    b.begin().run(insert("c", doc! {"_id": 2, "x": 7})).await.unwrap();
    b.commit().await.unwrap();
    let reply = a.begin().run(insert("c", doc! {"_id": 3, "x": 7})).await.unwrap();
    assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
    // The error has aborted it.
    assert_eq!(code(a.commit().await), codes::NO_SUCH_TRANSACTION);
}

#[tokio::test]
async fn a_plain_write_waits_for_the_transaction_that_has_its_record() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 1)).await.unwrap();
    let other = node.clone();
    let increment = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "x": 10 } } }] };
    let waiting = runtime::spawn(async move { plain(&other, increment).await });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    a.commit().await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 11}]);
}

#[tokio::test]
async fn a_collection_and_its_indexes_are_made_with_the_commit() {
    let node = testing::node(Some("rs"));
    let mut a = Client::new(&node, 1);
    a.begin().run(doc! {"create": "new"}).await.unwrap();
    a.run(doc! {"createIndexes": "new", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})
        .await
        .unwrap();
    a.run(insert("new", doc! {"_id": 1, "x": 1})).await.unwrap();
    assert!(node.namespaces.slot("t.new").read_unchecked().collection.is_none());
    a.commit().await.unwrap();
    let slot = node.namespaces.slot("t.new");
    assert_eq!(slot.read_unchecked().collection.as_ref().unwrap().indexes().len(), 2);
    assert_eq!(all(&node, "t.new").len(), 1);
    let refused =
        a.begin().run(doc! {"createIndexes": "new", "indexes": [{"key": {"y": 1}, "name": "y_1"}]}).await;
    assert_eq!(code(refused), codes::OPERATION_NOT_SUPPORTED_IN_TRANSACTION);
}

#[tokio::test]
async fn a_commit_is_one_entry_that_a_restart_replays() {
    let files = MemoryFiles::default();
    let node = testing::open(Some("rs"), &files, |_| {});
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 1)).await.unwrap();
    a.run(insert("d", doc! {"_id": 1})).await.unwrap();
    a.commit().await.unwrap();
    node.shutdown();
    drop((node, a));
    let node = testing::open(Some("rs"), &files, |_| {});
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
    assert_eq!(all(&node, "t.d"), [doc! {"_id": 1}]);
    let mut again = Client::new(&node, 1);
    again.begin();
    again.commit().await.unwrap();
    assert_eq!(node.sessions.documents()[0].get_str("state"), Some("committed"));
}

#[tokio::test]
async fn more_than_one_entry_holds_is_a_chain() {
    let files = MemoryFiles::default();
    let node = testing::open(Some("rs"), &files, |_| {});
    let mut a = Client::new(&node, 1);
    a.begin();
    for i in 0..5 {
        a.run(insert("c", doc! {"_id": i, "pad": "x".repeat(5 << 20)})).await.unwrap();
    }
    a.commit().await.unwrap();
    node.shutdown();
    drop((node, a));
    let node = testing::open(Some("rs"), &files, |_| {});
    assert_eq!(all(&node, "t.c").len(), 5);
}

/// A member that has a chain from another may keep a moment in the midst of it, before anything of it is applied.
#[tokio::test]
async fn a_chain_is_read_whole_from_a_moment_in_its_midst() {
    let node = testing::node(Some("rs"));
    let mut a = Client::new(&node, 1);
    plain(&node, insert("c", doc! { "_id": "before" })).await.unwrap();
    let mut base = node.snapshot(&Operation::internal()).await.unwrap();
    a.begin();
    for i in 0..5 {
        a.run(insert("c", doc! {"_id": i, "pad": "x".repeat(5 << 20)})).await.unwrap();
    }
    a.commit().await.unwrap();
    let at = node.log.last_optime().ts;
    let mut reader = node.log.reader(ReadFrom::Ts(base.ts)).unwrap();
    let mut times = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        times.push(frame.optime.ts);
    }
    base.ts = *times.iter().find(|ts| **ts > base.ts && **ts < at).expect("it is one entry");
    let slot = node.namespaces.slot("t.c");
    let rebuilt = |base: NodeSnapshot, slot: &crate::namespace::Slot| {
        Moment::at(Arc::new(base), at, node.log.last_optime().ts).rebuilt(&node, slot)
    };
    assert_eq!(rebuilt(base, &slot).unwrap().collection.unwrap().len(), 6);
    // From before the log's beginning nothing can be read.
    let mut cut = node.snapshot(&Operation::internal()).await.unwrap();
    cut.ts = 1;
    let other = node.namespaces.slot("t.other");
    assert_eq!(rebuilt(cut, &other).err().map(|e| e.code), Some(codes::SNAPSHOT_TOO_OLD));
}

/// All collections of a moment have a transaction, or none has.
#[tokio::test]
async fn what_is_decided_after_a_moment_was_chosen_is_not_of_it() {
    let node = testing::node(Some("rs"));
    for c in ["a", "b"] {
        plain(&node, insert(c, doc! { "_id": 0 })).await.unwrap();
    }
    let base = Arc::new(node.snapshot(&Operation::internal()).await.unwrap());
    let mut a = Client::new(&node, 1);
    a.begin();
    for c in ["a", "b"] {
        a.run(insert(c, doc! { "_id": 1 })).await.unwrap();
    }
    let prepared = a.prepare().await.unwrap();
    let read = |moment: &Moment, ns: &str| {
        let frozen = moment.rebuilt(&node, &node.namespaces.slot(ns)).unwrap();
        frozen.collection.unwrap().len()
    };
    let before = Moment::at(base.clone(), prepared.as_u64(), node.log.last_optime().ts);
    assert_eq!(read(&before, "t.a"), 1);
    let body = a.body(doc! { "commitTransaction": 1 });
    node.commit_transaction(&operation(&body), Some(prepared), LIMITS).await.unwrap();
    assert_eq!(read(&before, "t.b"), 1);
    let after = Moment::at(base, prepared.as_u64(), node.log.last_optime().ts);
    assert_eq!((read(&after, "t.a"), read(&after, "t.b")), (2, 2));
}

/// A commit is not refused: what an index admits may not have changed since the snapshot.
#[tokio::test]
async fn a_transaction_does_not_touch_a_collection_whose_index_was_made_unique() {
    let node = testing::node(Some("rs"));
    let index = |unique: bool| {
        let spec = doc! { "key": { "x": 1 }, "name": "x_1", "unique": unique };
        doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)] }
    };
    plain(&node, insert("other", doc! { "_id": 0 })).await.unwrap();
    plain(&node, insert("c", doc! { "_id": 0, "x": 1 })).await.unwrap();
    plain(&node, index(false)).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(doc! { "find": "other" }).await.unwrap();
    plain(&node, doc! { "dropIndexes": "c", "index": "x_1" }).await.unwrap();
    plain(&node, index(true)).await.unwrap();
    assert_eq!(code(a.run(insert("c", doc! { "_id": 1, "x": 1 })).await), codes::SNAPSHOT_UNAVAILABLE);
    // As it is now, one that begins now may.
    a.begin().run(insert("c", doc! { "_id": 1, "x": 2 })).await.unwrap();
    a.commit().await.unwrap();
}

#[tokio::test]
async fn a_prepared_transaction_keeps_its_locks_through_a_restart_and_a_checkpoint() {
    for checkpoint in [false, true] {
        let files = MemoryFiles::default();
        let node = testing::open(Some("rs"), &files, |_| {});
        let (mut a, at) = Client::prepared(&node).await;
        assert_eq!(code(a.run(set(1, 2)).await), codes::PREPARED_TRANSACTION_IN_PROGRESS);
        if checkpoint {
            node.checkpoint().unwrap();
        }
        node.shutdown();
        drop((node, a));
        let node = testing::open(Some("rs"), &files, |_| {});
        assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 0}]);
        assert_eq!(node.reap_transactions(), 0);
        let mut b = Client::new(&node, 2);
        // A transaction would wait for the outcome; a plain write does.
        let body = set(1, 9).to_doc_buf();
        let mut op = Operation::parse(1, Arc::new(ClientInfo::default()), body.doc()).unwrap();
        op.deadline = Some(runtime::Instant::now() + Duration::from_millis(20));
        assert_eq!(code(run(&node, &op, &body).await), codes::MAX_TIME_MS_EXPIRED);
        let mut again = Client::new(&node, 1);
        again.begin();
        let commit = again.body(doc! {"commitTransaction": 1});
        node.commit_transaction(&operation(&commit), Some(at), LIMITS).await.unwrap();
        assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
        b.begin().run(set(1, 2)).await.unwrap();
        b.commit().await.unwrap();
        node.shutdown();
        drop((node, again, b));
        let node = testing::open(Some("rs"), &files, |_| {});
        assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 2}]);
    }
}

/// The commit's readers (change streams, reads in the past) go back to them.
#[tokio::test]
async fn the_entries_that_prepared_a_transaction_stay_in_the_log_until_it_ends() {
    let files = MemoryFiles::default();
    let small = |options: &mut storage::log::LogOptions| {
        options.segment_bytes = 4096;
        options.retain_bytes = 8192;
        options.sync = storage::log::SyncPolicy::Group { interval: Duration::from_millis(1) };
    };
    let node = testing::open(Some("rs"), &files, small);
    let (a, at) = Client::prepared(&node).await;
    let prepared = || node.entry_at(protocol::session::EntryTime { ts: at.as_u64(), term: 1 }).is_ok();
    let fill = async || {
        for i in 0..200 {
            let client = LocalClient::new(node.clone());
            client.put("t.other", &doc! { "_id": i, "pad": "x".repeat(200) }).await.unwrap();
        }
        node.checkpoint_and_trim().unwrap();
    };
    fill().await;
    assert!(prepared());
    // What was left to the log by a step-down holds it too.
    node.yield_transactions();
    fill().await;
    assert!(prepared());
    node.restore_prepared(node.replication.transactions_between()).unwrap();
    node.replication.forget_between();
    a.abort().await.unwrap();
    fill().await;
    assert!(!prepared());
}

#[tokio::test]
async fn an_end_that_goes_on_after_its_transaction_was_yielded_logs_nothing() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let slots = [node.namespaces.slot("t.c")];
    let op = Operation::internal();
    let mut a = Client::new(&node, 1);
    for prepares in [false, true] {
        a.begin().run(set(1, 1)).await.unwrap();
        let t = node.transactions.open().remove(0);
        node.yield_transactions();
        let before = node.log.appended();
        let done = match prepares {
            false => node.write_wide(&op, &slots, |unit| node.log_commit(&t, unit)).await.map(drop),
            true => node.write_wide(&op, &[], |unit| node.log_prepare(&t, unit)).await.map(drop),
        };
        assert_eq!((code(done), node.log.appended()), (codes::NO_SUCH_TRANSACTION, before));
    }

    // What was prepared goes on as another transaction, when the node leads again.
    a.begin().run(set(1, 2)).await.unwrap();
    let at = a.prepare().await.unwrap();
    let t = node.transactions.open().remove(0);
    let prepared = t.state.lock().prepared.unwrap();
    node.yield_transactions();
    node.restore_prepared(node.replication.transactions_between()).unwrap();
    let before = node.log.appended();
    for decision in [Decision::Commit(at), Decision::Abort] {
        let decide = node.write_wide(&op, &slots, |unit| node.log_decided(&t, unit, prepared, decision));
        assert_eq!(code(decide.await), codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
    }
    assert_eq!(node.log.appended(), before);
    let commit = a.body(doc! {"commitTransaction": 1});
    node.commit_transaction(&operation(&commit), Some(at), LIMITS).await.unwrap();
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 2}]);
}

/// A reign may end, seen by another worker, while it begins.
#[tokio::test]
async fn what_is_prepared_is_in_one_place_however_reigns_begin_and_end() {
    let node = testing::node(Some("rs"));
    let (a, _) = Client::prepared(&node).await;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                node.yield_transactions();
            }
        });
        for _ in 0..20_000 {
            node.claim_prepared(|| true, || Ok(())).unwrap();
            if node.prepared_transactions().is_empty() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(node.prepared_transactions().len(), 1);
    node.claim_prepared(|| true, || Ok(())).unwrap();
    assert_eq!(node.claim_prepared(|| false, || Ok(())).unwrap(), None);
    assert!(node.replication.transactions_between().is_empty());
    a.abort().await.unwrap();
    assert_eq!(node.prepared_transactions().len(), 0);
}

#[tokio::test]
async fn a_prepare_is_noted_before_a_step_down_can_come() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 1)).await.unwrap();
    let (t, op) = (node.transactions.open().remove(0), Operation::internal());
    let prepare = node.write_wide_noting(
        &op,
        |unit| node.log_prepare(&t, unit),
        |first, appended| {
            assert!(node.gate.try_write().is_none());
            t.note_prepared(first, appended)
        },
    );
    let at = prepare.await.unwrap().unwrap();
    node.yield_transactions();
    let left = node.replication.transactions_between();
    assert_eq!(left.iter().map(|t| t.prepared).collect::<Vec<_>>(), [Some(at)]);
}

/// A coordinator takes NoSuchTransaction as an acknowledgement: whoever comes to a prepared transaction after its node has
/// stepped down must not hear that.
#[tokio::test]
async fn after_a_step_down_nobody_is_told_what_became_of_a_prepared_transaction() {
    let node = testing::node(Some("rs"));
    node.initiate(testing::config()).await.unwrap();
    let (a, at) = Client::prepared(&node).await;
    let mut next = Client::new(&node, 1);
    next.number = a.number;
    let waiting = runtime::spawn(async move { code(next.begin().run(doc! {"find": "c"}).await) });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    node.step_down(&Operation::internal(), 3600, 0, true).await.unwrap();
    assert_eq!(waiting.await.unwrap(), codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
    let commit = a.body(doc! { "commitTransaction": 1 });
    let commit = node.commit_transaction(&operation(&commit), Some(at), LIMITS).await;
    let outcomes = [code(commit), code(a.abort().await), code(a.prepare().await)];
    assert_eq!(outcomes, [codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE; 3]);
    node.step_up(false).await.unwrap();
    assert_eq!(a.prepare().await.unwrap(), at);
}

#[tokio::test]
async fn what_was_forgotten_is_reaped_and_what_was_killed_is_gone() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 1)).await.unwrap();
    assert_eq!(node.reap_transactions(), 0);
    node.abort_transactions_of(|_| true);
    assert_eq!(code(a.commit().await), codes::NO_SUCH_TRANSACTION);
    let short = Limits { lifetime: Duration::ZERO, ..LIMITS };
    let body = a.begin().body(doc! {"find": "c"});
    let Admitted::Run(entered) =
        node.enter_transaction(&operation(&body), Wanted::Start { may_restart: false }, short).await.unwrap()
    else {
        panic!("no repetition")
    };
    entered.leave(true);
    assert_eq!(node.reap_transactions(), 1);
    assert_eq!(code(a.commit().await), codes::NO_SUCH_TRANSACTION);
    assert!(node.transactions.locks.is_empty());
}

#[tokio::test]
async fn a_transaction_writes_no_more_than_its_limit() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin();
    let limits = Limits { bytes_max: 5000, ..LIMITS };
    let mut refused = Vec::new();
    for id in 2..5 {
        let body = a.body(insert("c", doc! {"_id": id, "x": "x".repeat(2000)}));
        let op = operation(&body);
        let wanted = match id {
            2 => Wanted::Start { may_restart: false },
            _ => Wanted::Continue,
        };
        let Admitted::Run(entered) = node.enter_transaction(&op, wanted, limits).await.unwrap() else {
            panic!("no repetition")
        };
        let done = run(&node, &op, &body).await;
        entered.leave(done.is_ok());
        refused.push(match done {
            Ok(reply) => reply.get_array("writeErrors").map_or(0, |errors| {
                errors[0].as_document().and_then(|e| e.get_i64("code")).unwrap_or(-1) as i32
            }),
            Err(e) => e.code,
        });
    }
    assert_eq!(refused, [0, 0, codes::TRANSACTION_TOO_LARGE]);
    assert_eq!(code(a.commit().await), codes::NO_SUCH_TRANSACTION);
    assert_eq!(all(&node, "t.c").len(), 1);
}

#[tokio::test]
async fn all_commands_of_a_transaction_carry_the_same_api_parameters() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1})).await.unwrap();
    let mut a = Client::new(&node, 1);
    let find = doc! {"find": "c", "apiVersion": "1", "apiStrict": false};
    a.begin().run(find.clone()).await.unwrap();
    for other in [
        doc! {"find": "c"},
        doc! {"find": "c", "apiVersion": "1"},
        doc! {"find": "c", "apiVersion": "1", "apiStrict": true},
        doc! {"find": "c", "apiVersion": "1", "apiStrict": false, "apiDeprecationErrors": false},
    ] {
        assert_eq!(code(a.run(other).await), codes::API_MISMATCH_ERROR);
    }
    a.run(find).await.unwrap();
    assert_eq!(code(a.commit().await), codes::API_MISMATCH_ERROR);
    let commit = a.body(doc! {"commitTransaction": 1, "apiVersion": "1", "apiStrict": false});
    node.commit_transaction(&operation(&commit), None, LIMITS).await.unwrap();
}

#[tokio::test]
async fn a_catalog_change_waits_for_the_transaction_and_makes_its_snapshot_old() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1})).await.unwrap();
    plain(&node, insert("d", doc! {"_id": 1})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(doc! {"find": "c"}).await.unwrap();
    let other = node.clone();
    let dropping = runtime::spawn(async move {
        ddl::collections::drop_collection(&other, &Operation::internal(), "t.c", false).await
    });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!dropping.is_finished());
    ddl::collections::drop_collection(&node, &Operation::internal(), "t.d", false).await.unwrap();
    assert_eq!(code(a.run(doc! {"find": "d"}).await), codes::SNAPSHOT_UNAVAILABLE);
    dropping.await.unwrap().unwrap();
}

/// The statement as its client repeats it to the node: `{$inc: {x: 1}}` on `_id` 1, statement 0 of the write `number`.
async fn repeated(node: &Arc<Node>, id: u8, number: i64) -> Result<Document> {
    let mut command = increment();
    command.push("lsid", doc! { "id": Value::uuid([id; 16]) });
    command.push("txnNumber", number);
    plain(node, command).await
}
fn increment() -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "x": 1 } } }] }
}

#[tokio::test]
async fn what_a_router_has_executed_for_a_write_is_told_to_every_repetition_also_after_a_restart() {
    for (prepared, checkpointed) in [(false, false), (false, true), (true, false), (true, true)] {
        let files = Arc::new(MemoryFiles::default());
        let mut node = testing::open(Some("rs"), &files, |_| {});
        plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
        let mut first = Client::router(&node, 7, 5, 1);
        first.run(increment()).await.unwrap();
        if prepared {
            let at = first.prepare().await.unwrap();
            let commit = first.body(doc! {"commitTransaction": 1});
            node.commit_transaction(&operation(&commit), Some(at), LIMITS).await.unwrap();
        } else {
            first.commit().await.unwrap();
        }
        drop(first);
        for restarted in [false, true] {
            if restarted {
                if checkpointed {
                    node.checkpoint().unwrap();
                }
                node.shutdown();
                drop(node);
                node = testing::open(Some("rs"), &files, |_| {});
            }
            // An older number may not come again, though this node has seen the newer only through a router.
            assert_eq!(code(repeated(&node, 7, 4).await), codes::TRANSACTION_TOO_OLD);
            let mut second = Client::router(&node, 7, 5, 2);
            assert_eq!(code(second.run(doc! {"find": "c"}).await), codes::TRANSACTION_COMMITTED);
            let reply = repeated(&node, 7, 5).await.unwrap();
            let expected = doc! {"n": 1, "nModified": 1, "retriedStmtIds": vec![Value::Int32(0)]};
            assert_eq!(reply, expected, "{prepared} {checkpointed} {restarted}");
        }
        assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
        // With the next number the children's history is over.
        repeated(&node, 7, 6).await.unwrap();
        assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 2}]);
        assert_eq!(node.sessions.len(), 1);
    }
}

#[tokio::test]
async fn of_two_routers_with_one_write_the_later_ends_the_other() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let (mut first, mut second) = (Client::router(&node, 7, 5, 1), Client::router(&node, 7, 5, 2));
    first.run(increment()).await.unwrap();
    second.run(doc! {"find": "c"}).await.unwrap();
    assert_eq!(code(first.commit().await), codes::NO_SUCH_TRANSACTION);
    second.run(increment()).await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
    // So does the write itself, and a transaction of a newer number.
    let mut third = Client::router(&node, 8, 5, 3);
    third.run(increment()).await.unwrap();
    repeated(&node, 8, 5).await.unwrap();
    assert_eq!(code(third.commit().await), codes::NO_SUCH_TRANSACTION);
    let mut fourth = Client::router(&node, 9, 0, 4);
    fourth.run(increment()).await.unwrap();
    Client::new(&node, 9).begin().run(doc! {"find": "c"}).await.unwrap();
    assert_eq!(code(fourth.commit().await), codes::NO_SUCH_TRANSACTION);
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 2}]);
}

#[tokio::test]
async fn a_repetition_waits_for_what_is_prepared() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1, "x": 0})).await.unwrap();
    let mut first = Client::router(&node, 7, 5, 1);
    first.run(increment()).await.unwrap();
    let at = first.prepare().await.unwrap();
    // Nothing of it is forgotten meanwhile, however old it grows.
    node.sessions.reap(i64::MAX);
    node.sessions.reap_history(&node.sessions.with_old_history(i64::MAX), i64::MAX);
    let other = node.clone();
    let waiting = runtime::spawn(async move { repeated(&other, 7, 5).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    let commit = first.body(doc! {"commitTransaction": 1});
    node.commit_transaction(&operation(&commit), Some(at), LIMITS).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().get_i64("n"), Some(1));
    assert_eq!(all(&node, "t.c"), [doc! {"_id": 1, "x": 1}]);
}

#[tokio::test]
async fn who_waits_in_vain_for_a_lock_is_told_who_holds_it() {
    let node = testing::node(Some("rs"));
    plain(&node, insert("c", doc! {"_id": 1})).await.unwrap();
    let mut a = Client::new(&node, 1);
    a.begin().run(set(1, 1)).await.unwrap();
    let slot = node.namespaces.slot("t.c");
    let soon = Duration::from_millis(5);
    let refused = node.intent_exclusive(&slot, soon, "a").await.unwrap_err();
    assert_eq!(refused.code, codes::LOCK_TIMEOUT);
    let held = "Unable to acquire lock on 't.c' within 5ms; it is held by transaction 1 of session \
                01010101-0101-0101-0101-010101010101";
    assert_eq!(refused.message, held);
    a.commit().await.unwrap();
    let changing = node.intent_exclusive(&slot, soon, "operation 7").await.unwrap();
    let refused = node.intent_exclusive(&slot, soon, "b").await.unwrap_err();
    assert!(refused.message.ends_with("; it is held by operation 7"), "{}", refused.message);
    let refused = Client::new(&node, 2).begin().run(set(1, 2)).await.unwrap_err();
    assert_eq!(refused.code, codes::LOCK_TIMEOUT);
    assert!(refused.message.ends_with("; it is held by operation 7"), "{}", refused.message);
    drop(changing);
    let kept = slot.keep_ranges(&Operation::internal()).await.unwrap();
    let refused = slot.let_ranges_go(soon).await.unwrap_err();
    assert!(refused.message.contains("; it is held by operation "), "{}", refused.message);
    drop(kept);
    assert!(slot.let_ranges_go(soon).await.is_ok());
}

#[tokio::test]
async fn a_transaction_writes_documents_whose_keys_take_long() {
    let node = testing::node(Some("rs"));
    plain(&node, doc! {"createIndexes": "c", "indexes": [{"key": {"s": "text"}, "name": "s"}]})
        .await
        .unwrap();
    let words: String = (0..20_000).map(|i| format!("w{i:05} ")).collect();
    let mut a = Client::new(&node, 1);
    let documents = vec![doc! {"x": 0}, doc! {"s": words.clone(), "x": 1}, doc! {"x": 3}];
    let long = doc! {"insert": "c", "documents": documents};
    crate::lane::metered(a.begin().run(long)).await.unwrap();
    let counted = |t: &Arc<super::Transaction>| {
        let state = t.state.lock();
        (state.bytes, state.writes.iter().map(|w| w.bytes().len() as u64).sum::<u64>())
    };
    let (counted, written) = counted(&node.transactions.open()[0]);
    assert_eq!(counted, written, "what was written before the keys were waited for counts, too");
    let upsert =
        doc! {"update": "c", "updates": [{"q": {"x": 2}, "u": {"$set": {"s": words}}, "upsert": true}]};
    crate::lane::metered(a.run(upsert)).await.unwrap();
    let delete = doc! {"delete": "c", "deletes": [{"q": {"x": 1}, "limit": 1}]};
    crate::lane::metered(a.run(delete)).await.unwrap();
    a.commit().await.unwrap();
    let keys = node.namespaces.slot("t.c").read_unchecked().collection.as_ref().map(|c| c.indexes()[1].len());
    assert_eq!((keys, all(&node, "t.c").len()), (Some(20_000), 3));
    assert!(node.transactions.locks.is_empty());
}
