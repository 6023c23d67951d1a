//! Reshardings beside what else happens to their collections, shards and coordinators.

use super::*;
use crate::messages::resharding::ReshardAbort;

impl Cluster {
    /// Waits until the coordinator on a has come to a fail point, does `meanwhile`, and lets it go on; the outcome of `command`.
    async fn at_point(
        &self,
        point: &str,
        command: Document,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<Document> {
        let ddl = self.ddl("a");
        let points = &ddl.role.node.failpoints;
        points.configure(point, Mode::AlwaysOn, doc! {});
        let change = async {
            points.wait_entered(point, 1).await;
            meanwhile.await;
            points.configure(point, Mode::Off, doc! {});
        };
        let (outcome, ()) = tokio::join!(self.send("a", "d", command), change);
        self.settle().await;
        outcome
    }
    /// How many documents of `ns` each shard has.
    fn held(&self, ns: &str) -> [usize; 2] {
        ["a", "b"].map(|shard| self.count(shard, ns).unwrap_or(0))
    }
    async fn move_from(&self, ns: &str, x: i32, shard: &str) {
        let range = doc! { "x": x };
        let command = doc! {
            "_configsvrMoveRange": ns, "toShard": shard, "min": range, "max": { "x": Value::MaxKey },
        };
        self.config(command).await.unwrap();
    }
}

fn hashed(name: &str) -> Document {
    doc! { "_shardsvrReshardCollection": name, "key": { "_id": "hashed" } }
}
fn moved(name: &str, shard: &str) -> Document {
    doc! { "_shardsvrReshardCollection": name, "provenance": "moveCollection", "toShard": shard }
}

/// A shard that gets its first chunk when the request was looked at, and before chunks stand still, is a donor.
#[tokio::test]
async fn documents_that_moved_just_before_the_freeze_are_copied() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let point = "hangDdlCoordinatorBeforePersisting_freezeMigrations";
    c.at_point(point, hashed("c"), c.move_from("d.c", 10, "b")).await.unwrap();
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
    assert_eq!(c.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_collection_that_is_tracked_by_its_move_keeps_its_collation() {
    let c = Cluster::new().await;
    let create =
        doc! { "_shardsvrCreateCollection": "plain", "collation": { "locale": "en", "strength": 2 } };
    c.send("a", "d", create).await.unwrap();
    c.send("a", "d", moved("plain", "b")).await.unwrap();
    for to in ["b", "a"] {
        c.send("a", "d", moved("plain", to)).await.unwrap();
        let entry = c.catalog().catalog().collection_document("d.plain").unwrap();
        assert_eq!(entry.get_path("defaultCollation.strength").and_then(Value::as_i64), Some(2), "on {to}");
    }
}

/// The UUID of a resharding may be the client's choice, and it may choose one twice.
#[tokio::test]
async fn another_resharding_under_the_same_uuid_is_refused_and_leaves_the_first_alone() {
    let c = Cluster::new().await;
    c.prepare().await;
    let under_one_uuid = |name: &str| {
        let mut command = hashed(name);
        command.push("reshardingUUID", Value::uuid([8; 16]));
        command
    };
    let second = async {
        let refused = c.send("a", "d", under_one_uuid("h")).await.unwrap_err();
        assert_eq!(refused.code, codes::RESHARD_COLLECTION_IN_PROGRESS);
    };
    c.at_point("reshardingPauseCoordinatorInCloning", under_one_uuid("m"), second).await.unwrap();
    assert!(c.happened(&protocols::RESHARD));
    assert_eq!(c.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_shard_that_restarts_in_the_middle_of_the_copy_is_told_anew() {
    let c = Cluster::new().await;
    c.prepare().await;
    c.at_point("reshardingPauseCoordinatorInCloning", hashed("m"), c.crash("b")).await.unwrap();
    assert!(c.happened(&protocols::RESHARD));
    assert_eq!(c.findings().await, [""; 0]);
}

/// Zones may be defined before a collection is sharded; it may be moved in between.
#[tokio::test]
async fn zones_for_a_sharding_to_come_outlast_moves_and_are_used() {
    let c = Cluster::new().await;
    c.ddl("a").role.local.ensure_collection("d.plain", &[(doc! { "x": 1, "y": 1 }, doc! {})]).await.unwrap();
    c.insert("a", "d.plain", 5).await;
    c.config(doc! { "_configsvrAddShardToZone": "b", "zone": "low" }).await.unwrap();
    let zone = async |min: Value, max: i32| {
        let command = doc! {
            "_configsvrUpdateZoneKeyRange": "d.plain", "min": { "x": min }, "max": { "x": max }, "zone": "low",
        };
        c.config(command).await.unwrap();
    };
    zone(Value::MinKey, 3).await;
    c.send("a", "d", moved("plain", "b")).await.unwrap();
    zone(Value::Int32(3), 4).await;
    c.send("a", "d", moved("plain", "a")).await.unwrap();
    assert_eq!(c.catalog().catalog().zone_ranges("d.plain").len(), 2);
    c.shard_collection("plain", doc! { "x": 1, "y": 1 }).await.unwrap();
    c.settle().await;
    let config = c.catalog();
    let catalog = config.catalog();
    let chunks = catalog.chunks(&catalog.sharded("d.plain").unwrap()).unwrap();
    let low = doc! { "x": 4, "y": Value::MinKey };
    let below: Vec<&str> =
        chunks.iter().filter(|c| config::catalog::compare(&c.max, &low).is_le()).map(|c| &*c.shard).collect();
    assert!(!below.is_empty() && below.iter().all(|shard| *shard == "b"), "{chunks:?}");
    assert_eq!(c.held("d.plain").iter().sum::<usize>(), 5);
}

/// shardCollection of a tracked collection copies it, and has the same options as that of any other.
#[tokio::test]
async fn the_options_of_shard_collection_hold_for_a_tracked_collection() {
    let c = Cluster::new().await;
    let shard = async |name: &str, key: Document, options: Document| {
        let mut command = doc! { "_shardsvrCreateCollection": name, "shardKey": key };
        command.0.extend(options);
        let done = c.send("a", "d", command).await;
        c.settle().await;
        done.err().map_or(0, |e| e.code)
    };
    let unique = (doc! { "u": 1 }, doc! { "unique": true });
    c.ddl("a").role.local.ensure_collection("d.plain", &[unique]).await.unwrap();
    c.send("a", "d", moved("plain", "b")).await.unwrap();
    let x = || doc! { "x": 1 };
    let no_check = || doc! { "enforceUniquenessCheck": false };
    let other = doc! { "collectionUUID": Value::uuid([9; 16]), "enforceUniquenessCheck": false };
    assert_eq!(shard("plain", x(), other).await, codes::COLLECTION_UUID_MISMATCH);
    assert_eq!(shard("plain", x(), doc! {}).await, codes::INVALID_OPTIONS, "the unique index");
    let no_index = doc! { "implicitlyCreateIndex": false, "enforceUniquenessCheck": false };
    assert_eq!(shard("plain", x(), no_index).await, codes::INVALID_OPTIONS);
    c.insert("b", "d.plain", 1).await;
    assert_eq!(
        shard("plain", x(), no_check()).await,
        codes::INVALID_OPTIONS,
        "it has documents and no index"
    );
    c.ddl("b").role.local.delete("d.plain", &doc! { "_id": 0 }).await.unwrap();
    assert_eq!(shard("plain", x(), no_check()).await, 0);
    let create =
        doc! { "_shardsvrCreateCollection": "collated", "collation": { "locale": "en", "strength": 2 } };
    c.send("a", "d", create).await.unwrap();
    c.send("a", "d", moved("collated", "b")).await.unwrap();
    assert_eq!(shard("collated", x(), doc! {}).await, codes::BAD_VALUE);
    assert_eq!(shard("collated", x(), doc! { "collation": { "locale": "simple" } }).await, 0);
    assert_eq!(c.findings().await, [""; 0]);
}

/// The catalog names the copy, and the coordinator's document is lost before any shard has heard of it.
#[tokio::test]
async fn the_cleanup_of_a_committed_resharding_finishes_it() {
    let c = Cluster::new().await;
    c.prepare().await;
    let ddl = c.ddl("a");
    let point = "hangDdlCoordinatorBeforeRunning_switchCollections";
    ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    tokio::select! {
        outcome = c.send("a", "d", hashed("m")) => panic!("ended with {outcome:?}"),
        () = ddl.role.node.failpoints.wait_entered(point, 1) => {}
    }
    ddl.role.local.delete(COORDINATORS, &doc! {}).await.unwrap();
    drop(ddl);
    c.crash("a").await;
    c.send("a", "d", doc! { "_shardsvrCleanupReshardCollection": "m" }).await.unwrap();
    c.settle().await;
    assert!(c.happened(&protocols::RESHARD));
    assert_eq!(c.findings().await, [""; 0]);
}

/// The config server has forgotten the operation, and a shard that has a part of the copy cannot be told yet.
#[tokio::test]
async fn a_cleanup_that_is_interrupted_halfway_goes_on_until_all_is_taken_back() {
    let c = Cluster::new().await;
    c.prepare().await;
    let ddl = c.ddl("a");
    let point = "reshardingPauseCoordinatorInCloning";
    ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    tokio::select! {
        outcome = c.send("a", "d", hashed("m")) => panic!("ended with {outcome:?}"),
        () = ddl.role.node.failpoints.wait_entered(point, 1) => {}
    }
    ddl.role.local.delete(COORDINATORS, &doc! {}).await.unwrap();
    drop(ddl);
    c.crash("a").await;
    let cleanup = || c.send("a", "d", doc! { "_shardsvrCleanupReshardCollection": "m" });
    *c.network.held.lock() = Some(("b:1", "_shardsvrReshardAbort"));
    let halfway = async {
        while c.network.unread.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        outcome = cleanup() => panic!("ended with {outcome:?}"),
        () = halfway => {}
    }
    assert!(c.catalog().local.find("config.reshardingOperations", &doc! {}).unwrap().is_empty());
    c.crash("a").await;
    cleanup().await.unwrap();
    c.settle().await;
    assert_eq!(c.findings().await, [""; 0]);
    let entry = c.catalog().catalog().collection_document("d.m").unwrap();
    assert_ne!(entry.get_bool("allowMigrations"), Some(false));
}

/// A message of an earlier run is read just before the copy begins that a later run has prepared.
#[tokio::test]
async fn a_late_message_does_not_end_the_copy_that_was_begun_anew() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    *c.network.held.lock() = Some(("b:1", "_shardsvrReshardPrepare"));
    let sent = async {
        while c.network.unread.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        outcome = c.send("a", "d", hashed("c")) => panic!("ended with {outcome:?}"),
        () = sent => {}
    }
    let refused = Arc::new(Mutex::new(None));
    let (network, answer) = (c.network.clone(), refused.clone());
    *c.network.hook.lock() = Some(Arc::new(move |host, name| {
        let begins = host == "b:1" && name == "_shardsvrReshardClone";
        let late = if begins { network.unread.lock().take() } else { None };
        let (network, answer) = (network.clone(), answer.clone());
        Box::pin(async move {
            if let Some((db, late)) = late {
                *answer.lock() = network.call("b:1", &db, late).await.err().map(|e| e.code);
            }
        })
    }));
    c.crash("a").await;
    c.settle().await;
    assert_eq!(*refused.lock(), Some(codes::TRANSACTION_TOO_OLD));
    assert_eq!(c.catalog().catalog().sharded("d.c").unwrap().info.key, doc! { "_id": "hashed" });
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
    *c.network.hook.lock() = None;
}

/// Somebody writes to a donor past its versions, so that there is always another difference.
#[tokio::test]
async fn a_donor_that_does_not_come_to_rest_is_not_taken_for_level() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let (local, next) = (c.ddl("a").role.local.clone(), Arc::new(std::sync::atomic::AtomicI32::new(100)));
    *c.network.hook.lock() = Some(Arc::new(move |host, name| {
        let disturbs = host == "a:1" && name == "_shardsvrReshardFetch";
        let (local, next) = (local.clone(), next.clone());
        Box::pin(async move {
            if disturbs {
                let x = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                local.insert("d.c", &doc! { "_id": x, "x": x }).await.unwrap();
            }
        })
    }));
    let to_b = doc! { "shard": "b" };
    let reshard =
        doc! { "_shardsvrReshardCollection": "c", "key": { "_id": 1 }, "shardDistribution": [to_b] };
    let refused = c.send("a", "d", reshard).await.unwrap_err();
    assert_eq!(refused.code, codes::RESHARDING_CRITICAL_SECTION_TIMEOUT);
    *c.network.hook.lock() = None;
    c.settle().await;
    assert_eq!(c.catalog().catalog().sharded("d.c").unwrap().info.key, doc! { "x": 1 });
    assert_eq!(c.findings().await, [""; 0]);
}

/// A request of the copy's first attempt lies unread in the socket of a paused donor, and is read in the middle of the second.
#[tokio::test]
async fn what_a_recipient_of_an_earlier_attempt_asks_for_is_not_missing_from_the_copy() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    c.move_to("d.c", "b").await.unwrap();
    *c.network.held.lock() = Some(("b:1", "_shardsvrReshardFetch"));
    let sent = async {
        while c.network.unread.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        outcome = c.send("a", "d", hashed("c")) => panic!("ended with {outcome:?}"),
        () = sent => {}
    }
    let network = c.network.clone();
    *c.network.hook.lock() = Some(Arc::new(move |host, name| {
        let fetches = host == "b:1" && name == "_shardsvrReshardFetch";
        let late = if fetches { network.unread.lock().take() } else { None };
        let network = network.clone();
        Box::pin(async move {
            if let Some((db, late)) = late {
                drop(network.call("b:1", &db, late).await);
            }
        })
    }));
    c.crash("a").await;
    c.settle().await;
    assert!(c.network.unread.lock().is_none());
    assert_eq!(c.catalog().catalog().sharded("d.c").unwrap().info.key, doc! { "_id": "hashed" });
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
    *c.network.hook.lock() = None;
}

/// The config server is away when a donor looks up what it owns, and what the donor has written down is older than its newest range.
#[tokio::test]
async fn a_donor_hands_out_by_the_placement_in_force_only() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    c.move_from("d.c", 10, "b").await;
    let (ddl, key) = (c.ddl("b"), doc! { "_id": "d.c" });
    let cached = || ddl.role.local.find_one("config.cache.collections", &key).unwrap();
    while cached().is_none_or(|d| d.get_bool("refreshing") != Some(false)) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    c.ddl("a").role.node.failpoints.configure("doNotRefreshRecipientAfterCommit", Mode::AlwaysOn, doc! {});
    let rest = doc! {
        "_configsvrMoveRange": "d.c", "toShard": "b", "min": { "x": Value::MinKey }, "max": { "x": 10 },
    };
    c.config(rest).await.unwrap();
    let (network, first) = (c.network.clone(), AtomicUsize::new(1));
    *c.network.hook.lock() = Some(Arc::new(move |host, name| {
        if host == "b:1" && name == "_shardsvrReshardDonate" {
            network.away.store(first.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        Box::pin(async {})
    }));
    let unshard =
        doc! { "_shardsvrReshardCollection": "c", "provenance": "unshardCollection", "toShard": "a" };
    c.send("a", "d", unshard).await.unwrap();
    *c.network.hook.lock() = None;
    c.settle().await;
    assert_eq!(c.held("d.c"), [20, 0]);
}

/// Power fails on the shard that donates and receives, but does not coordinate, before the `n`th message to it, or while it executes that.
/// Whether there were so many.
async fn falls_at(n: i64, executing: bool) -> bool {
    const BUCKETS: &str = "d.system.buckets.u";
    let c = Cluster::new().await;
    c.prepare().await;
    let (db, first) = RESHARD_SERIES.asked();
    c.send("a", db, first).await.unwrap();
    c.settle().await;
    let (told, mut telling) = tokio::sync::mpsc::unbounded_channel();
    let left = std::sync::atomic::AtomicI64::new(n);
    *c.network.hook.lock() = Some(Arc::new(move |host: &str, name: &str| {
        let this = host == "b:1" && name.starts_with("_shardsvr") && left.fetch_sub(1, Ordering::SeqCst) == 0;
        let told = this.then(|| told.clone());
        Box::pin(async move {
            let (go, gone) = tokio::sync::oneshot::channel::<()>();
            if told.is_some_and(|told| told.send(go).is_ok()) {
                drop(gone.await);
            }
        })
    }));
    let command = || {
        let id = Value::uuid([9; 16]);
        let mut command =
            doc! { "_shardsvrReshardCollection": "u", "key": { "m": 1 }, "numInitialChunks": 2 };
        command.push(repeated::REQUEST_ID, id);
        command
    };
    let sent = c.send("a", "d", command());
    tokio::pin!(sent);
    let (fell, outcome) = tokio::select! {
        outcome = &mut sent => (false, outcome),
        Some(go) = telling.recv() => {
            if executing {
                drop(go);
                tokio::task::yield_now().await;
                c.crash("b").await;
            } else {
                c.crash("b").await;
                drop(go);
            }
            (true, sent.await)
        }
    };
    *c.network.hook.lock() = None;
    c.settle().await;
    let at = format!("message {n}, {executing}");
    if let Err(e) = outcome {
        assert!(e.is(document::error::RETRIABLE), "{at}: {e:?}");
        c.repeat("d", command()).await.unwrap_or_else(|e| panic!("{at}, repeated: {e:?}"));
        c.settle().await;
    }
    let now = c.catalog().catalog().sharded(BUCKETS).unwrap();
    assert_eq!((now.info.key.clone(), now.may_migrate()), (doc! { "meta": 1 }, true), "{at}");
    let held = c.held(BUCKETS);
    assert_eq!((held[0] + held[1], held.contains(&0)), (20, false), "{at}: {held:?}");
    assert_eq!(c.findings().await, [""; 0], "{at}");
    fell
}

#[tokio::test]
async fn a_resharding_of_a_time_series_outlasts_every_fall_of_a_participant() {
    for executing in [false, true] {
        let mut n = 0;
        while falls_at(n, executing).await {
            n += 1;
        }
        assert!(n > 10, "{n} messages");
    }
}

/// What the config server was asked to note lies unread in its socket until the operation has been given up.
#[tokio::test]
async fn a_resharding_that_was_given_up_is_not_noted_late() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let unread = async || {
        while c.network.unread.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    *c.network.held.lock() = Some(("config:1", "_configsvrReshardingBegin"));
    tokio::select! {
        outcome = c.send("a", "d", hashed("c")) => panic!("ended with {outcome:?}"),
        () = unread() => {}
    }
    let late = c.network.unread.lock().take().unwrap().1;
    *c.network.held.lock() = Some(("b:1", "_shardsvrReshardPrepare"));
    c.crash("a").await;
    unread().await;
    c.send("a", "d", doc! { "_shardsvrAbortReshardCollection": "c" }).await.unwrap();
    c.settle().await;
    let refused = c.network.call("config:1", "admin", late).await.unwrap_err();
    assert_eq!(refused.code, codes::TRANSACTION_TOO_OLD);
    assert!(c.catalog().local.find(config::RESHARDING_OPERATIONS, &doc! {}).unwrap().is_empty());
    c.send("a", "d", hashed("c")).await.unwrap();
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
    assert_eq!(c.findings().await, [""; 0]);
}

/// The coordinator had taken its commit for refused when it lost power.
#[tokio::test]
async fn a_resharding_that_is_found_committed_when_it_is_undone_is_not_repeated() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let mut again = hashed("c");
    again.push("forceRedistribution", true);
    again.push(repeated::REQUEST_ID, Value::uuid([7; 16]));
    let ddl = c.ddl("a");
    let point = "hangDdlCoordinatorBeforeRunning_switchCollections";
    ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    tokio::select! {
        outcome = c.send("a", "d", again.clone()) => panic!("ended with {outcome:?}"),
        () = ddl.role.node.failpoints.wait_entered(point, 1) => {}
    }
    let mut state = ddl.role.local.find(COORDINATORS, &doc! {}).unwrap().remove(0);
    state.insert("phase", protocol::ddl::UNDO);
    ddl.role.local.put(COORDINATORS, &state).await.unwrap();
    drop(ddl);
    c.crash("a").await;
    let uuid = || c.catalog().catalog().sharded("d.c").unwrap().info.uuid;
    let committed = uuid();
    c.repeat("d", again).await.unwrap();
    c.settle().await;
    assert_eq!(uuid(), committed);
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
}

/// Reshardings of one collection copy under one name.
#[tokio::test]
async fn the_end_of_another_resharding_takes_no_copy_away() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let ddl = c.ddl("a");
    let of = || {
        let state = ddl.role.local.find(COORDINATORS, &doc! {}).unwrap().remove(0);
        reshard::operation_of(&state).unwrap()
    };
    let meanwhile = async {
        let mut other = of();
        other.new = [9; 16];
        for shard in ["a", "b"] {
            let abort = ReshardAbort { of: other.clone() }.to_document();
            c.network.call(&format!("{shard}:1"), "admin", abort.to_doc_buf()).await.unwrap();
        }
    };
    let point = "hangDdlCoordinatorBeforePersisting_commit";
    c.at_point(point, hashed("c"), meanwhile).await.unwrap();
    assert_eq!(c.held("d.c").iter().sum::<usize>(), 20);
}

/// Whatever has taken a copy away, the old collection is the last there is.
#[tokio::test]
async fn a_shard_without_its_part_of_the_copy_keeps_the_old_collection() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let ddl = c.ddl("a");
    let point = "hangDdlCoordinatorBeforeRunning_switchCollections";
    ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    tokio::select! {
        outcome = c.send("a", "d", hashed("c")) => panic!("ended with {outcome:?}"),
        () = ddl.role.node.failpoints.wait_entered(point, 1) => {}
    }
    let state = ddl.role.local.find(COORDINATORS, &doc! {}).unwrap().remove(0);
    let of = reshard::operation_of(&state).unwrap();
    let (node, op) = (&ddl.role.node, Operation::internal());
    node::ddl::collections::drop_collection(node, &op, &of.temporary, true).await.unwrap();
    let refused = crate::shard::resharding::recipient::switch(&ddl.role, &of).await.unwrap_err();
    assert_eq!(refused.code, codes::OPERATION_FAILED);
    assert_eq!(c.count("a", "d.c"), Some(20));
    ddl.stop();
}
