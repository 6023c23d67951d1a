//! Operations on a collection beside a migration of one of its chunks, from shard a to shard b, and the crash of either shard where
//! they meet.
//!
//! ```text
//! a migration stands at a step     an operation begins    nobody, a or b loses power    both end
//! an operation stands at a step    a migration begins     nobody, a or b loses power    both end
//! ```
//! The steps are those that the machines list: the fail points of donor and recipient, and the phases of each coordinator. Afterwards
//! every document is visible once, or all are gone; catalog and shards agree; nothing is left of either; the next operation works.
//!
//! One cell in [`STRIDE`] is run, or all where `TESSERA_PAIRS` is `all`.

use super::*;
use node::failpoints::is_known;

/// Prime to the number of [`CRASHES`], so that the cells that are run hold each of them.
const STRIDE: usize = 8;
const LIMIT: Duration = Duration::from_secs(20);
/// How long the second may take to end or to wait for the first.
const MEET: Duration = Duration::from_millis(40);

struct Operation {
    protocol: Option<&'static Protocol>,
    command: fn() -> (&'static str, Document),
    /// No document is left when it has succeeded.
    drops: bool,
}

const OPERATIONS: &[Operation] = &[
    Operation {
        protocol: Some(&protocols::DROP_COLLECTION),
        command: || ("d", doc! { "_shardsvrDropCollection": "p" }),
        drops: true,
    },
    Operation {
        protocol: Some(&protocols::DROP_DATABASE),
        command: || ("d", doc! { "_shardsvrDropDatabase": 1 }),
        drops: true,
    },
    Operation {
        protocol: Some(&protocols::RENAME_COLLECTION),
        command: || ("d", doc! { "_shardsvrRenameCollection": "p", "to": "d.q" }),
        drops: false,
    },
    Operation {
        protocol: Some(&protocols::MOVE_PRIMARY),
        command: || ("admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }),
        drops: false,
    },
    Operation {
        protocol: Some(&protocols::REFINE_SHARD_KEY),
        command: || {
            ("d", doc! { "_shardsvrRefineCollectionShardKey": "p", "newShardKey": { "x": 1, "_id": 1 } })
        },
        drops: false,
    },
    Operation {
        protocol: Some(&protocols::RESHARD),
        command: || ("d", doc! { "_shardsvrReshardCollection": "p", "key": { "_id": "hashed" } }),
        drops: false,
    },
    Operation {
        protocol: Some(&protocols::RESHARD),
        command: || {
            let to_a = doc! { "toShard": "a", "provenance": "unshardCollection" };
            let mut command = doc! { "_shardsvrReshardCollection": "p" };
            command.0.extend(to_a.0);
            ("d", command)
        },
        drops: false,
    },
    Operation {
        protocol: Some(&protocols::CREATE_INDEXES),
        command: || {
            let index = doc! { "key": { "y": 1 }, "name": "y_1" };
            ("d", doc! { "_shardsvrCreateIndexes": "p", "indexes": [index] })
        },
        drops: false,
    },
    Operation {
        protocol: None,
        command: || ("d", doc! { "_shardsvrSetAllowMigrations": "p", "allowMigrations": true }),
        drops: false,
    },
];

/// Who loses power where the two meet.
const CRASHES: [Option<&str>; 3] = [None, Some("a"), Some("b")];

/// The fail points at which a migration can stand, with the shard that stands there.
fn steps_of_migration() -> Vec<(&'static str, String)> {
    let numbered =
        |stem: &'static str| (1..).map(move |n| format!("{stem}{n}")).take_while(|name| is_known(name));
    let donor = numbered("moveChunkHangAtStep").map(|name| ("a", name));
    let recipient = numbered("migrateThreadHangAtStep").map(|name| ("b", name));
    let later = ["hangBeforeMakingCommitDecisionDurable", "hangBeforePostMigrationCommitRefresh"];
    let later = later.into_iter().map(|name| ("a", name.to_string()));
    donor.chain(recipient).chain(later).collect()
}

/// The fail points of an operation's phases, on the primary.
fn steps_of(operation: &Operation) -> Vec<String> {
    let mut steps = Vec::new();
    for phase in operation.protocol.into_iter().flat_map(|p| p.phases) {
        if phase.on_failure != protocol::ddl::OnFailure::Fail {
            steps.push(format!("hangDdlCoordinatorBeforePersisting_{}", phase.name));
        }
        steps.push(format!("hangDdlCoordinatorBeforeRunning_{}", phase.name));
    }
    steps
}

impl Cluster {
    async fn prepare_pair(&self) {
        self.shard_collection("p", doc! { "x": 1 }).await.unwrap();
        self.ddl("a")
            .role
            .local
            .ensure_collection("d.p", &[(doc! { "x": 1, "_id": 1 }, doc! {})])
            .await
            .unwrap();
        self.insert("a", "d.p", 20).await;
        self.insert("a", "d.plain", 5).await;
    }
    async fn migrate(&self) -> Result<Document> {
        let (min, max) = (doc! { "x": 10 }, doc! { "x": Value::MaxKey });
        let command = doc! { "_configsvrMoveRange": "d.p", "toShard": "b", "min": min, "max": max };
        self.config(command).await
    }
    /// The `_id`s that a router would find.
    fn visible(&self, ns: &str) -> Vec<i64> {
        let config = self.catalog();
        let catalog = config.catalog();
        let sharded = catalog.find_collection(ns).unwrap();
        let primary = catalog.database("d").map_or("a".to_string(), |d| d.primary);
        let chunks = sharded.as_ref().map(|sharded| catalog.chunks(sharded).unwrap());
        let owner = |d: &Document| match (&sharded, &chunks) {
            (Some(sharded), Some(chunks)) => {
                let key = sharded.key.key_of(d.to_doc_buf().doc()).unwrap();
                chunks.iter().find(|c| c.contains(&key)).unwrap().shard.to_string()
            }
            _ => primary.clone(),
        };
        let mut found = Vec::new();
        for shard in ["a", "b"] {
            let held = self.ddl(shard).role.local.find(ns, &doc! {}).unwrap();
            found.extend(held.iter().filter(|d| owner(d) == shard).filter_map(|d| d.get_i64("_id")));
        }
        found.sort_unstable();
        found
    }
    async fn migrations_settle(&self, cell: &str) {
        for shard in ["a", "b"] {
            let role = self.ddl(shard).role.clone();
            let settled = tokio::time::timeout(LIMIT, role.migrations.join()).await;
            assert!(settled.is_ok(), "{cell}: a migration does not end on {shard}");
        }
    }

    /// Runs `first` to `point` on `shard`, begins `second`, lets `crash` lose power, and lets both end; the outcome of each.
    async fn meet(
        &self,
        (shard, point): (&str, &str),
        crash: Option<&str>,
        first: impl Future<Output = Result<Document>>,
        second: impl Future<Output = Result<Document>>,
    ) -> Option<[Result<Document>; 2]> {
        let ddl = self.ddl(shard);
        ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
        tokio::pin!(first, second);
        let reached = async { ddl.role.node.failpoints.wait_entered(point, 1).await };
        tokio::select! {
            // Not every operation passes every step: none does of what it has no need for.
            _ = &mut first => return None,
            () = reached => {}
        }
        // The second may end the first, and may wait for it.
        let (mut ended, mut early) = (None, None);
        let met = tokio::time::sleep(MEET);
        tokio::pin!(met);
        while ended.is_none() || early.is_none() {
            tokio::select! {
                done = &mut first, if ended.is_none() => ended = Some(done),
                done = &mut second, if early.is_none() => early = Some(done),
                () = &mut met => break,
            }
        }
        let loss = async move {
            // A node that loses power is let go of before it starts again.
            let held = (crash != Some(shard)).then_some(ddl);
            if let Some(crashed) = crash {
                self.crash(crashed).await;
            }
            if let Some(ddl) = held {
                ddl.role.node.failpoints.configure(point, Mode::Off, doc! {});
            }
        };
        // Who waits for the shard that loses power hears of it, as a client does.
        let ends = (end_of("the first", ended, first), end_of("the second", early, second));
        let ((), first, second) = tokio::join!(loss, ends.0, ends.1);
        Some([first, second])
    }

    async fn check_pair(&self, operation: &Operation, outcome: &Result<Document>, cell: &str) {
        self.migrations_settle(cell).await;
        self.settle().await;
        self.migrations_settle(cell).await;
        let all: Vec<i64> = ["d.p", "d.q"].iter().flat_map(|ns| self.visible(ns)).collect();
        let (kept, gone) = (all == (0..20).collect::<Vec<i64>>(), all.is_empty());
        let expected = match (operation.drops, outcome) {
            (true, Ok(_)) => gone,
            (true, Err(_)) => gone || kept,
            (false, _) => kept,
        };
        assert!(expected, "{cell}: {outcome:?} leaves {all:?}");
        assert_eq!(self.findings().await, [""; 0], "{cell}");
        // Both of these wait for what would be left, and fail where it is in the way.
        let Some(database) = self.catalog().catalog().database("d") else { return };
        for name in ["p", "q"] {
            let drop = doc! { "_shardsvrDropCollection": name };
            self.send(&database.primary, "d", drop)
                .await
                .unwrap_or_else(|e| panic!("{cell}: drop of {name}: {e:?}"));
            assert_eq!(
                [self.count("a", &format!("d.{name}")), self.count("b", &format!("d.{name}"))],
                [None, None],
                "{cell}"
            );
        }
        self.settle().await;
    }
}

/// What has come of one of the two, or comes of it.
async fn end_of(
    name: &str,
    ended: Option<Result<Document>>,
    pending: impl Future<Output = Result<Document>>,
) -> Result<Document> {
    match ended {
        Some(done) => done,
        None => tokio::time::timeout(LIMIT, pending).await.unwrap_or_else(|_| panic!("{name} does not end")),
    }
}

fn selected() -> impl FnMut() -> bool {
    let (all, mut n) = (std::env::var("TESSERA_PAIRS").is_ok_and(|v| v == "all"), 0);
    move || {
        n += 1;
        all || n % STRIDE == 1
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_begun_at_any_step_of_a_migration_ends_with_every_document_once_or_none() {
    let (mut selected, mut met) = (selected(), 0);
    for operation in OPERATIONS {
        for (shard, point) in steps_of_migration() {
            for crash in CRASHES.into_iter().filter(|_| selected()) {
                let c = Cluster::new().await;
                c.prepare_pair().await;
                let (db, command) = (operation.command)();
                let cell = format!("{} at {point}, {crash:?} crashes", command.iter().next().unwrap().0);
                let Some([_, outcome]) =
                    c.meet((shard, &point), crash, c.migrate(), c.send("a", db, command)).await
                else {
                    continue;
                };
                met += 1;
                c.check_pair(operation, &outcome, &cell).await;
            }
        }
    }
    assert!(met > 30, "{met} cells");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_begun_at_any_step_of_an_operation_ends_with_every_document_once_or_none() {
    let (mut selected, mut met) = (selected(), 0);
    for operation in OPERATIONS {
        for point in steps_of(operation) {
            for crash in CRASHES.into_iter().filter(|_| selected()) {
                let c = Cluster::new().await;
                c.prepare_pair().await;
                let (db, command) = (operation.command)();
                let cell = format!("{point}, {crash:?} crashes");
                let Some([outcome, _]) =
                    c.meet(("a", &point), crash, c.send("a", db, command), c.migrate()).await
                else {
                    continue;
                };
                met += 1;
                c.check_pair(operation, &outcome, &cell).await;
            }
        }
    }
    assert!(met > 15, "{met} cells");
}
