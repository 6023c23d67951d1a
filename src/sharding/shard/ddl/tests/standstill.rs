//! What stops the whole cluster for good, or loses what a restore puts back, if it is seen too late.

use super::super::standstill::{EVERYTHING, LEASE};
use super::*;
use crate::shard::range_deleter::TASKS;
use node::fork;
use node::transaction::{Admitted, Limits};

const COORDINATORS_HERE: &str = "config.sharding_configsvr_coordinators";
pub(super) const LIMITS: Limits = Limits {
    lifetime: Duration::from_secs(60),
    lock_timeout: Some(Duration::from_millis(5)),
    section_timeout: Duration::from_millis(500),
    bytes_max: u64::MAX,
    may_restart: false,
};

/// Ends instead of going on for good.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it goes on for good")
}

impl Cluster {
    async fn snapshot(&self, name: &str) {
        within(self.config(doc! { "_configsvrTesseraSnapshot": name })).await.unwrap();
    }
    async fn restore(&self, name: &str) -> Result<Document> {
        within(self.config(doc! { "_configsvrTesseraRestore": name })).await
    }
    fn config_node(&self) -> Arc<Node> {
        self.catalog().node.clone()
    }
    /// Nothing is under way, and clients do not wait.
    fn check_over(&self) {
        assert!(self.catalog().local.find(COORDINATORS_HERE, &doc! {}).unwrap().is_empty());
        for shard in ["a", "b"] {
            let ddl = self.ddl(shard);
            assert!(ddl.role.node.namespaces.standstill.signal().is_none(), "{shard} stands still");
            assert!(ddl.role.local.find(block::SECTIONS, &doc! {}).unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn a_copy_that_is_too_large_is_refused_and_the_cluster_goes_on() {
    let c = Cluster::new().await;
    let local = c.ddl("a").role.local.clone();
    local.insert("d.plain", &doc! { "_id": 1 }).await.unwrap();
    let pad = "x".repeat(15 << 20);
    for i in 0..5 {
        let view = doc! { "_id": format!("d.v{i}"), "viewOn": "plain", "pipeline": Vec::<Document>::new(), "pad": pad.as_str() };
        local.insert("d.system.views", &view).await.unwrap();
    }
    let refused = within(c.config(doc! { "_configsvrTesseraFork": "d", "to": "e" })).await.unwrap_err();
    assert_eq!(refused.code, codes::OPERATION_FAILED, "{}", refused.message);
    c.check_over();
    assert_eq!(c.count("a", "e.plain"), None);
}

#[tokio::test]
async fn a_snapshot_without_the_catalogs_part_is_not_put_back() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    c.snapshot("s").await;
    let parts: Vec<String> = fork::list_snapshots(&c.config_node())
        .iter()
        .map(|d| d.get_str("name").unwrap().to_string())
        .collect();
    assert!(parts.len() == 1 && parts[0].starts_with("catalog-"), "{parts:?}");
    fork::drop_snapshot(&c.config_node(), &Operation::internal(), &parts[0]).await.unwrap();
    assert_eq!(c.restore("s").await.unwrap_err().code, codes::NAMESPACE_NOT_FOUND);
    c.check_over();
    assert!(c.catalog().catalog().sharded("d.h").is_ok() && c.findings().await.is_empty());
}

#[tokio::test]
async fn a_shard_that_comes_when_a_snapshot_is_dropped_waits_until_the_shards_are_written_down() {
    let c = Cluster::new().await;
    c.snapshot("s").await;
    let (mut c, point) = (c, "hangStandstillBefore_start");
    c.disks.insert("c".to_string(), SimulatedDisk::new());
    c.start("c").await;
    let node = c.config_node();
    node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    let dropping = c.config(doc! { "_configsvrTesseraSnapshot": "s", "drop": true });
    let adding = async {
        node.failpoints.wait_entered(point, 1).await;
        let adding = c.config(doc! { "_configsvrAddShard": "c/c:1" });
        tokio::pin!(adding);
        let early = tokio::time::timeout(Duration::from_millis(300), &mut adding).await;
        node.failpoints.configure(point, Mode::Off, doc! {});
        assert!(early.is_err(), "{early:?}");
        drop(adding.await);
    };
    let (dropped, ()) = within(async { tokio::join!(dropping, adding) }).await;
    dropped.unwrap();
    c.check_over();
}

#[tokio::test]
async fn a_copy_waits_for_what_is_prepared_before_anything_is_copied() {
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
    let (op, body) = in_transaction(doc! { "insert": "plain", "documents": [doc! { "_id": "prepared" }] });
    let wanted = protocol::transaction::Request::Start { may_restart: false };
    let Admitted::Run(entered) = node.enter_transaction(&op, wanted, LIMITS).await.unwrap() else { panic!() };
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    node::write::insert::insert(&node, &op, request).await.unwrap();
    entered.leave(true);
    let prepared = in_transaction(doc! { "prepareTransaction": 1 }).0;
    let at = node.prepare_transaction(&prepared, LIMITS).await.unwrap();
    let copying = c.config(doc! { "_configsvrTesseraFork": "d", "to": "e" });
    tokio::pin!(copying);
    let early = tokio::time::timeout(Duration::from_millis(500), &mut copying).await;
    assert!(early.is_err(), "{early:?}");
    let state = c.catalog().local.find(COORDINATORS_HERE, &doc! {}).unwrap();
    assert_eq!(state[0].get_str("phase"), Some("begin"), "it could not be undone any more");
    let commit = in_transaction(doc! { "commitTransaction": 1 }).0;
    node.commit_transaction(&commit, Some(at), LIMITS).await.unwrap();
    within(copying).await.unwrap();
    assert_eq!(c.count("a", "e.plain"), Some(2));
    c.check_over();
}

#[tokio::test]
async fn a_copy_has_the_range_deletions_of_what_was_renamed_and_not_of_a_namesake() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    let uuid = c.catalog().catalog().sharded("d.h").unwrap().info.uuid;
    let task = |id: u8, ns: &str, uuid: [u8; 16]| {
        doc! {
            "_id": Value::uuid([id; 16]), "nss": ns, "collectionUuid": Value::uuid(uuid), "donorShardId": "a",
            "range": { "min": { "x": Value::MinKey }, "max": { "x": 0i64 } }, "pending": true, "whenToClean": "now",
            "numOrphanDocs": i64::from(id), "keyPattern": { "x": "hashed" },
        }
    };
    let local = c.ddl("a").role.local.clone();
    local.insert(TASKS, &task(1, "d.earlier", uuid)).await.unwrap();
    local.insert(TASKS, &task(2, "d.h", [9; 16])).await.unwrap();
    within(c.config(doc! { "_configsvrTesseraFork": "d", "to": "e" })).await.unwrap();
    let copied = local.find(TASKS, &doc! { "nss": "e.h" }).unwrap();
    let copy = c.catalog().catalog().sharded("e.h").unwrap().info.uuid;
    let shown = |d: &Document| (d.get("collectionUuid").and_then(Value::as_uuid), d.get_i64("numOrphanDocs"));
    assert_eq!(copied.iter().map(shown).collect::<Vec<_>>(), [(Some(copy), Some(1))]);
}

/// Sends a shard a step of one standstill.
async fn take_step(ddl: &Ddl, step: &str, reads: bool) -> Result<Document> {
    let run = fence::Run { coordinator: [3; 16], number: 1 };
    let mut body = doc! { "_shardsvrStandstill": step, "reads": reads, "drop": Vec::<Value>::new() };
    body.push(fence::MEMBER, run.to_document());
    let body = body.to_doc_buf();
    ddl.standstill_step(Request { db: "admin", body: body.doc(), sequences: &[] }).await
}

/// Lets time go by. What waits for a disk does so on the machine's clock again.
async fn later(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// Waits until clients of the shard go on.
async fn ends(ddl: &Ddl) {
    within(async {
        while ddl.role.node.namespaces.standstill.signal().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_standstill_outlives_what_other_shards_wait_for_and_ends_without_its_coordinator() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    let stands = || ddl.role.node.namespaces.standstill.signal().is_some();
    take_step(&ddl, "quiesce", false).await.unwrap();
    // Coordinators and migrations of another shard, and the catalog.
    later(Duration::from_secs(20 + 60 + 20)).await;
    take_step(&ddl, "begin", false).await.unwrap();
    for _ in 0..5 {
        // Prepared transactions of another shard.
        later(Duration::from_secs(20)).await;
        take_step(&ddl, "confirm", false).await.unwrap();
    }
    assert!(stands());
    later(LEASE).await;
    ends(&ddl).await;
    assert_eq!(take_step(&ddl, "confirm", false).await.unwrap_err().code, codes::ILLEGAL_OPERATION);
}

/// Before `begin` a shard may wait longer than afterwards, when clients wait too.
#[tokio::test]
async fn clients_wait_no_longer_than_the_lease_that_began_with_their_waiting() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    take_step(&ddl, "quiesce", false).await.unwrap();
    later(Duration::from_secs(1)).await;
    take_step(&ddl, "begin", false).await.unwrap();
    later(LEASE).await;
    ends(&ddl).await;
}

#[tokio::test]
async fn a_step_takes_up_a_standstill_that_the_reign_could_not() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    let step = async |step: &str| take_step(&ddl, step, true).await;
    step("quiesce").await.unwrap();
    step("begin").await.unwrap();
    ddl.forget_standstill();
    ddl.role.migrations.let_go();
    step("confirm").await.unwrap();
    assert!(ddl.role.node.namespaces.standstill.signal().is_some());
    step("end").await.unwrap();
    assert!(ddl.role.local.find_one(block::SECTIONS, &doc! { "_id": EVERYTHING }).unwrap().is_none());
    assert_eq!(step("confirm").await.unwrap_err().code, codes::ILLEGAL_OPERATION);
    c.check_over();
}

#[tokio::test]
async fn an_exchange_of_the_catalog_that_is_repeated_notes_what_is_gone_and_leaves_no_stage() {
    let c = Cluster::new().await;
    c.snapshot("s").await;
    c.shard_collection("since", doc! { "x": "hashed" }).await.unwrap();
    let (config, point) = (c.catalog(), "hangStandstillBefore_end");
    config.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    let restoring = c.restore("s");
    let interrupted = async {
        config.node.failpoints.wait_entered(point, 1).await;
        config.stop_whole();
    };
    let (stopped, ()) = tokio::join!(restoring, interrupted);
    assert!(stopped.is_err());
    config.node.failpoints.configure(point, Mode::Off, doc! {});
    // As if it had been interrupted between the exchange and what is noted.
    let noted = doc! { "nss": "d.since", "shards": Vec::<Value>::new() };
    assert!(config.local.delete("config.placementHistory", &noted).await.unwrap() > 0);
    let mut state = config.local.find(COORDINATORS_HERE, &doc! {}).unwrap().remove(0);
    state.insert("phase", "catalog");
    config.local.put(COORDINATORS_HERE, &state).await.unwrap();
    within(config.clone().resume_whole()).await;
    assert_eq!(config.local.find("config.placementHistory", &noted).unwrap().len(), 1);
    let kept = fork::list_snapshots(&config.node);
    assert!(kept.iter().all(|d| d.get_str("name").unwrap().starts_with("catalog-")), "{kept:?}");
    assert!(config.node.namespaces.all().iter().all(|slot| {
        !slot.ns.starts_with("$snapshot:stage:") || slot.read_unchecked().collection.is_none()
    }));
    c.check_over();
}

#[tokio::test]
async fn a_step_of_an_attempt_before_a_restart_is_refused_while_the_next_goes_on() {
    let c = Cluster::new().await;
    c.snapshot("s").await;
    let (config, b) = (c.catalog(), c.ddl("b"));
    let (sent, next) = ("hangStandstillAfter_putBack", "hangStandstillBefore_catalog");
    b.role.node.failpoints.configure(sent, Mode::AlwaysOn, doc! {});
    config.node.failpoints.configure(next, Mode::AlwaysOn, doc! {});
    let interrupted = async {
        b.role.node.failpoints.wait_entered(sent, 1).await;
        config.stop_whole();
    };
    let (stopped, ()) = tokio::join!(c.restore("s"), within(interrupted));
    assert!(stopped.is_err());
    let state = config.local.find(COORDINATORS_HERE, &doc! {}).unwrap().remove(0);
    assert_eq!(state.get_str("phase"), Some("putBack"));
    b.role.node.failpoints.configure(sent, Mode::Off, doc! {});
    let late = async {
        config.node.failpoints.wait_entered(next, 1).await;
        let mut step = doc! { "_shardsvrStandstill": "putBack", "reported": Vec::<Value>::new() };
        step.push(fence::MEMBER, state.get_document("run").unwrap().clone());
        let late = c.network.call("b:1", "admin", step.to_doc_buf()).await;
        config.node.failpoints.configure(next, Mode::Off, doc! {});
        late
    };
    let ((), late) = tokio::join!(within(config.clone().resume_whole()), within(late));
    assert_eq!(late.unwrap_err().code, codes::TRANSACTION_TOO_OLD);
    c.check_over();
}

#[tokio::test]
async fn a_copy_whose_entries_are_more_than_one_commit_holds_is_entered() {
    let c = Cluster::new().await;
    let pad = "x".repeat(15 << 20);
    for i in 0..5 {
        let ns = format!("d.c{i}");
        c.shard_collection(&ns[2..], doc! { "x": "hashed" }).await.unwrap();
        let wide = |d: &mut Document| d.push("pad", pad.as_str());
        c.catalog().local.modify(config::COLLECTIONS, &Value::from(ns), wide).await.unwrap();
    }
    within(c.config(doc! { "_configsvrTesseraFork": "d", "to": "e" })).await.unwrap();
    let copied = c.catalog().catalog().collections().into_iter().filter(|c| c.info.ns.starts_with("e."));
    assert_eq!(copied.count(), 5);
    c.check_over();
}

#[tokio::test]
async fn a_copy_that_was_interrupted_between_its_commits_leaves_no_chunks_of_what_gave_way() {
    let c = Cluster::new().await;
    for name in ["h", "gone"] {
        c.shard_collection(name, doc! { "x": "hashed" }).await.unwrap();
    }
    within(c.config(doc! { "_configsvrTesseraFork": "d", "to": "e" })).await.unwrap();
    c.send("a", "d", doc! { "_shardsvrDropCollection": "gone" }).await.unwrap();
    c.settle().await;
    let config = c.catalog();
    let uuid = config.catalog().sharded("e.gone").unwrap().info.uuid;
    let point = "hangStandstillBefore_catalog";
    config.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    let interrupted = async {
        config.node.failpoints.wait_entered(point, 1).await;
        config.stop_whole();
    };
    let copying = c.config(doc! { "_configsvrTesseraFork": "d", "to": "e", "replace": true });
    let (stopped, ()) = tokio::join!(copying, within(interrupted));
    assert!(stopped.is_err());
    config.node.failpoints.configure(point, Mode::Off, doc! {});
    // As if the first of its commits had been made.
    config.commit(&[config::delete(config::COLLECTIONS, Value::from("e.gone"))]).await.unwrap();
    assert!(!config.catalog().chunk_documents(uuid).is_empty());
    within(config.clone().resume_whole()).await;
    assert_eq!(config.catalog().chunk_documents(uuid).len(), 0);
    assert_eq!(c.findings().await, [""; 0]);
    c.check_over();
}

#[tokio::test]
async fn a_standstill_that_waits_for_changes_ends_with_the_reign_it_began_in() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    let held = ddl.locks.take(&["d.plain"], "a test").await.unwrap();
    let run = fence::Run { coordinator: [5; 16], number: 1 };
    let mut quiesce = doc! { "_shardsvrStandstill": "quiesce" };
    quiesce.push(fence::MEMBER, run.to_document());
    let asked = c.send("a", "admin", quiesce);
    let stepping_down = async {
        while ddl.locks.users(super::super::locks::EVERYTHING) < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        ddl.stop();
        drop(held);
    };
    let (outcome, ()) = within(async { tokio::join!(asked, stepping_down) }).await;
    assert_eq!(outcome.unwrap_err().code, codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
    // Changes go on in a later reign.
    drop(within(ddl.locks.take(&["d.plain"], "a test")).await.unwrap());
}
