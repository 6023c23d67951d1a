//! Requests that wait for another coordinator's lock, while what they named becomes something else or is changed by another.

use super::standstill::LIMITS;
use super::*;
use node::transaction::Admitted;

impl Cluster {
    /// Sends a command that waits for the lock of `ns`, and lets it go on after `change`.
    async fn while_it_waits(
        &self,
        ns: &str,
        command: Document,
        change: impl Future<Output = ()>,
    ) -> Result<Document> {
        let ddl = self.ddl("a");
        let held = ddl.locks.take(&[ns], "a test").await.unwrap();
        let changed = async {
            while ddl.locks.users(ns) < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            change.await;
            drop(held);
        };
        let (outcome, ()) = tokio::join!(self.send("a", "d", command), changed);
        self.settle().await;
        outcome
    }
    /// Another collection takes the name, with three documents on a.
    async fn replace(&self, ns: &str) {
        self.config(doc! { "_configsvrCommitDropCollection": ns }).await.unwrap();
        for shard in ["a", "b"] {
            let node = self.ddl(shard).role.node.clone();
            node::ddl::collections::drop_collection(&node, &Operation::internal(), ns, false).await.unwrap();
        }
        self.insert("a", ns, 3).await;
    }
    fn uuid(&self, ns: &str) -> Value {
        Value::uuid(self.ddl("a").uuid_here(ns).unwrap())
    }
}

#[tokio::test]
async fn a_collection_named_by_uuid_is_compared_when_it_is_dropped() {
    for ns in ["d.h", "d.plain"] {
        let c = Cluster::new().await;
        c.prepare().await;
        let drop = doc! { "_shardsvrDropCollection": split(ns).1, "collectionUUID": c.uuid(ns) };
        let refused = c.while_it_waits(ns, drop, c.replace(ns)).await.unwrap_err();
        assert_eq!(refused.code, codes::COLLECTION_UUID_MISMATCH, "{ns}");
        assert_eq!(c.count("a", ns), Some(3), "{ns}");
    }
}

#[tokio::test]
async fn a_source_and_a_target_named_by_uuid_are_compared_when_they_are_renamed() {
    for (source, replaced) in
        [("d.h", "d.h"), ("d.h", "d.h2"), ("d.plain", "d.plain"), ("d.plain", "d.other")]
    {
        let c = Cluster::new().await;
        c.prepare().await;
        c.insert("a", "d.other", 1).await;
        let target = if source == "d.h" { "d.h2" } else { "d.other" };
        let rename = doc! {
            "_shardsvrRenameCollection": split(source).1, "to": target, "dropTarget": c.uuid(target),
            "collectionUUID": c.uuid(source),
        };
        let refused = c.while_it_waits(replaced, rename, c.replace(replaced)).await.unwrap_err();
        assert_eq!(refused.code, codes::COLLECTION_UUID_MISMATCH, "{source}, {replaced}");
        assert_eq!(c.count("a", replaced), Some(3), "{source}, {replaced}");
    }
}

impl Cluster {
    /// Sends `second` when the coordinator of `first` has come to a fail point, and lets it go on when `second` waits for the lock
    /// of `ns`, or has ended.
    async fn one_beside_another(
        &self,
        point: &str,
        ns: &str,
        first: Document,
        second: Document,
    ) -> [Result<Document>; 2] {
        let ddl = self.ddl("a");
        let points = &ddl.role.node.failpoints;
        points.configure(point, Mode::AlwaysOn, doc! {});
        let second = async {
            points.wait_entered(point, 1).await;
            let second = self.send("a", "d", second);
            tokio::pin!(second);
            let waits = async {
                while ddl.locks.users(ns) < 2 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let early = tokio::select! {
                done = &mut second => Some(done),
                () = waits => None,
            };
            points.configure(point, Mode::Off, doc! {});
            match early {
                Some(done) => done,
                None => second.await,
            }
        };
        let (first, second) = tokio::join!(self.send("a", "d", first), second);
        self.settle().await;
        [first, second]
    }
}

#[tokio::test]
async fn two_indexes_of_one_collection_are_built_one_after_the_other() {
    let c = Cluster::new().await;
    c.prepare().await;
    let create = |field: &str| {
        let spec = doc! { "key": { field: 1 }, "name": field };
        doc! { "_shardsvrCreateIndexes": "h", "indexes": [spec] }
    };
    let point = "hangDdlCoordinatorBeforeRunning_buildIndexes";
    for done in c.one_beside_another(point, "d.h", create("y"), create("z")).await {
        done.unwrap();
    }
    assert_eq!(["a", "b"].map(|s| c.ddl(s).definition_of("d.h").unwrap().1.len()), [4, 4]);
    assert!(c.catalog().catalog().sharded("d.h").unwrap().may_migrate());
}

#[tokio::test]
async fn indexes_that_every_shard_has_leave_migrations_and_versions_alone() {
    let c = Cluster::new().await;
    c.prepare().await;
    let uuid = c.catalog().catalog().sharded("d.h").unwrap().info.uuid;
    let chunks = || c.catalog().catalog().chunk_documents(uuid);
    let spec = |name: &str| doc! { "key": { "y": 1 }, "name": name };
    let create = |name: &str| doc! { "_shardsvrCreateIndexes": "h", "indexes": [spec(name)] };
    let first = c.send("a", "d", create("y_1")).await.unwrap();
    assert_eq!(first.get_i64("numIndexesAfter"), Some(3));
    let before = chunks();
    let again = c.send("a", "d", create("y_1")).await.unwrap();
    assert_eq!(again.get_str("note"), Some("all indexes already exist"));
    assert_eq!(again.get_document("raw").unwrap().len(), 2);
    assert_eq!(chunks(), before);
    let refused = c.send("a", "d", create("another")).await.unwrap_err();
    assert_eq!(refused.code, codes::INDEX_OPTIONS_CONFLICT, "the same keys under another name");
    // One shard without it is enough.
    let slot = c.ddl("b").role.node.namespaces.slot("d.h");
    let (node, name) = (c.ddl("b").role.node.clone(), Value::from("y_1"));
    node::ddl::indexes::drop_indexes_named(&node, &Operation::internal(), &slot, &name).await.unwrap();
    c.send("a", "d", create("y_1")).await.unwrap();
    c.settle().await;
    assert_eq!(c.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_drop_beside_a_drop_of_the_same_collection_by_uuid_succeeds() {
    let c = Cluster::new().await;
    c.prepare().await;
    let drop = doc! { "_shardsvrDropCollection": "h" };
    let by_uuid = doc! { "_shardsvrDropCollection": "h", "collectionUUID": c.uuid("d.h") };
    let point = "hangDdlCoordinatorBeforeRunning_enterCriticalSection";
    for done in c.one_beside_another(point, "d.h", by_uuid, drop).await {
        done.unwrap();
    }
    assert!(c.happened(&protocols::DROP_COLLECTION));
}

/// Each of two indexes may go while the other serves the shard key.
#[tokio::test]
async fn two_drops_of_indexes_leave_one_for_the_shard_key() {
    let c = Cluster::new().await;
    c.prepare().await;
    let drop = |index: &str| doc! { "_shardsvrDropIndexes": "r", "index": index };
    let point = "hangDdlCoordinatorBeforeRunning_updateShards";
    let [first, second] = c.one_beside_another(point, "d.r", drop("x_1"), drop("x_1_y_1")).await;
    first.unwrap();
    assert_eq!(second.unwrap_err().code, codes::CANNOT_DROP_SHARD_KEY_INDEX);
    assert_eq!(c.ddl("a").definition_of("d.r").unwrap().1.len(), 2);
    assert_eq!(c.findings().await, [""; 0]);
}

/// An index is multikey for the sake of another field, so every document is looked at for the shard key's.
#[tokio::test]
async fn other_tasks_run_while_documents_are_looked_at_for_a_shard_key() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    let index = (doc! { "k": 1, "tags": 1 }, doc! {});
    ddl.role.local.ensure_collection("d.tags", &[index]).await.unwrap();
    let (slot, op) = (ddl.role.node.namespaces.slot("d.tags"), Operation::internal());
    let fill = |unit: &mut node::WriteUnit<'_>| {
        for i in 0..50_000 {
            let d = doc! { "_id": i, "k": i, "tags": [1, 2] }.to_doc_buf();
            unit.insert(d.doc(), node::Origin::MIGRATION)?;
        }
        Ok(())
    };
    ddl.role.node.write(&op, &slot, fill).await.unwrap();
    let key = crate::key_pattern::ShardKeyPattern::parse(&doc! { "k": 1 }).unwrap();
    let (body, mut others) = (Document::new(), 0);
    let check = create::check_indexes(&ddl.role.node, "d.tags", &key, &body);
    tokio::pin!(check);
    loop {
        tokio::select! {
            biased;
            done = &mut check => break done.unwrap(),
            () = tokio::task::yield_now() => others += 1,
        }
    }
    assert!(others > 0);
    let array = doc! { "_id": -1, "k": [1], "tags": 1 };
    ddl.role.local.insert("d.tags", &array).await.unwrap();
    let refused = create::check_indexes(&ddl.role.node, "d.tags", &key, &body).await.unwrap_err();
    assert_eq!(refused.code, codes::INVALID_OPTIONS);
}

/// What a transaction commits between the copy and the end of it would go with the old copy.
#[tokio::test]
async fn a_database_moves_when_the_transactions_that_have_touched_it_have_ended() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 1).await;
    let node = c.ddl("a").role.node.clone();
    let in_transaction = |mut command: Document| {
        command.push("lsid", doc! { "id": Value::uuid([7; 16]) });
        command.push("txnNumber", 1i64);
        command.push("autocommit", false);
        let body = command.to_doc_buf();
        (Arc::new(Operation::parse(1, Arc::default(), body.doc()).unwrap()), body)
    };
    let (op, body) = in_transaction(doc! { "insert": "plain", "documents": [doc! { "_id": "open" }] });
    let wanted = protocol::transaction::Request::Start { may_restart: false };
    let Admitted::Run(entered) = node.enter_transaction(&op, wanted, LIMITS).await.unwrap() else { panic!() };
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    node::write::insert::insert(&node, &op, request).await.unwrap();
    entered.leave(true);
    let moving = c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" });
    tokio::pin!(moving);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut moving).await;
    assert!(early.is_err(), "{early:?}");
    let commit = in_transaction(doc! { "commitTransaction": 1 }).0;
    node.commit_transaction(&commit, None, LIMITS).await.unwrap();
    moving.await.unwrap();
    assert_eq!([c.count("a", "d.plain"), c.count("b", "d.plain")], [None, Some(2)]);
}
