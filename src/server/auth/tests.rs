//! Rights against a table from the manual, and logging in over the wire.

use super::needs::Asker;
use super::*;
use crate::dispatch::{Command, Handler, Needs, Request};
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::{Config, Running, Service};
use document::{DocBuf, Document, Value, array, codes, doc};
use node::auth::{RoleName, builtin};
use wire::client::{ConnectOptions, Connection, Credentials};

/// The built-in roles, each by the letter that stands for it below; the first six on database `d`.
const LETTERS: &[(char, &str)] = &[
    ('r', "read"),
    ('w', "readWrite"),
    ('a', "dbAdmin"),
    ('o', "dbOwner"),
    ('u', "userAdmin"),
    ('e', "enableSharding"),
    ('R', "readAnyDatabase"),
    ('W', "readWriteAnyDatabase"),
    ('U', "userAdminAnyDatabase"),
    ('A', "dbAdminAnyDatabase"),
    ('m', "clusterMonitor"),
    ('h', "hostManager"),
    ('g', "clusterManager"),
    ('c', "clusterAdmin"),
    ('b', "backup"),
    ('s', "restore"),
    ('*', "root"),
];

/// Who may run what, read out of the manual's pages on built-in roles and on each command. A command is on `d`, its collection
/// `d.c`, unless it is of the cluster.
const ALLOWED: &[(&str, &str)] = &[
    ("_mergeAuthzCollections", "Us*"),
    ("tesseraFork tesseraSnapshot tesseraSnapshots tesseraRestore", "s*"),
    ("find count distinct aggregate dataSize explain filemd5", "rwoRWb*"),
    ("insert godinsert", "woWs*"),
    (
        "update delete findAndModify bulkWrite mapReduce compactStructuredEncryptionData cleanupStructuredEncryptionData",
        "woW*",
    ),
    ("create drop createIndexes setIndexCommitQuorum convertToCapped", "waoWAs*"),
    ("dropIndexes", "waoWA*"),
    ("dropDatabase", "aoAc*"),
    ("collMod", "aoAs*"),
    ("renameCollection", "waoWA*"),
    ("cloneCollectionAsCapped", "woW*"),
    ("emptycapped", ""),
    (
        "compact reIndex validate planCacheClear planCacheListFilters planCacheClearFilters planCacheSetFilter",
        "aoA*",
    ),
    ("profile", "aoA*"),
    ("setProfilingFilterGlobally", "A*"),
    ("validateDBMetadata", "aoA*"),
    ("listCollections", "rwaoRWAbs*"),
    ("listIndexes", "rwaoRWAb*"),
    ("listSearchIndexes", "rwaoRWAb*"),
    ("createSearchIndexes updateSearchIndex", "waoWAs*"),
    ("dropSearchIndex", "waoWA*"),
    ("dbStats", "rwaoRWAmc*"),
    ("collStats", "rwaoRWAmcb*"),
    ("dbHash", "rwoRW*"),
    ("dbCheck", "gc*"),
    (
        "createUser updateUser dropUser dropAllUsersFromDatabase grantRolesToUser revokeRolesFromUser usersInfo",
        "uoUs*",
    ),
    ("createRole dropRole dropAllRolesFromDatabase grantRolesToRole revokeRolesFromRole rolesInfo", "uoUs*"),
    ("grantPrivilegesToRole revokePrivilegesFromRole", "uoUs*"),
    ("updateRole", "Us*"),
    ("listDatabases", "RWUAmcb*"),
    ("serverStatus lockInfo", "mcb*"),
    ("hostInfo getCmdLineOpts getLog connPoolStats top netstat shardingState getShardMap currentOp", "mc*"),
    ("getParameter", "mcbs*"),
    (
        "setParameter shutdown logRotate autoCompact fsync fsyncUnlock dropConnections connPoolSync replSetResizeOplog",
        "hc*",
    ),
    ("killOp killAllSessions killAllSessionsByPattern rotateCertificates", "hc*"),
    ("logMessage flushRouterConfig", "hgc*"),
    ("invalidateUserCache", "hUc*"),
    ("replSetGetStatus replSetGetConfig getDefaultRWConcern listShards", "mgc*"),
    (
        "tesseraStepDown replSetInitiate replSetReconfig replSetStepDown replSetStepUp replSetFreeze replSetMaintenance",
        "gc*",
    ),
    ("replSetSyncFrom replSetAbortPrimaryCatchUp setDefaultRWConcern setFeatureCompatibilityVersion", "gc*"),
    (
        "getClusterParameter setClusterParameter addShard removeShard startShardDraining stopShardDraining",
        "gc*",
    ),
    ("shardDrainingStatus commitShardRemoval cleanupOrphaned checkMetadataConsistency", "gc*"),
    ("setUserWriteBlockMode", "bs*"),
    ("analyzeShardKey", "egc*"),
    ("configureQueryAnalyzer", "aoAgc*"),
    ("appendOplogNote", "gcb*"),
    ("applyOps", "As*"),
    ("getDiagnosticData", "mc*"),
    ("getShardVersion getDatabaseVersion", "mc*"),
    ("shardCollection enableSharding balancerCollectionStatus configureCollectionBalancing", "egc*"),
    (
        "addShardToZone removeShardFromZone updateZoneKeyRange refineCollectionShardKey reshardCollection",
        "egc*",
    ),
    ("abortReshardCollection commitReshardCollection cleanupReshardCollection moveCollection", "egc*"),
    ("abortMoveCollection untrackUnshardedCollection", "egc*"),
    ("unshardCollection abortUnshardCollection", "egc*"),
    ("createUnsplittableCollection", "waoWAs*"),
    (
        "transitionFromDedicatedConfigServer transitionToDedicatedConfigServer startTransitionToDedicatedConfigServer \
         stopTransitionToDedicatedConfigServer getTransitionToDedicatedConfigServerStatus commitTransitionToDedicatedConfigServer",
        "gc*",
    ),
    ("moveChunk moveRange movePrimary setAllowMigrations split mergeChunks mergeAllChunksOnShard", "gc*"),
    ("clearJumboFlag splitVector repairShardedCollectionChunksHistory resetPlacementHistory", "gc*"),
    ("setQuerySettings removeQuerySettings", "gc*"),
    ("balancerStart balancerStop", "gcb*"),
    ("balancerStatus", "mgcb*"),
    (
        "replSetGetRBID replSetTest _replSetCopyNext _replSetCopyOpen replSetHeartbeat replSetRequestVotes replSetUpdatePosition",
        "",
    ),
];

/// The request by which a row is tried: the form of its argument, and what else decides.
fn request(row: &Command) -> (Document, &'static str) {
    let name = row.name;
    let role = || doc! { "role": "read", "db": "d" };
    let privilege = || doc! { "resource": { "db": "d", "collection": "" }, "actions": ["find"] };
    match name {
        "aggregate" => (doc! { name: "c", "pipeline": [{"$match": {}}], "cursor": {} }, "d"),
        "explain" => (doc! { name: { "find": "c" } }, "d"),
        "mapReduce" => (doc! { name: "c", "out": { "merge": "e" } }, "d"),
        "bulkWrite" => (
            doc! {
                name: 1, "ops": [{"update": 0, "filter": {}, "updateMods": {}}, {"delete": 0, "filter": {}}],
                "nsInfo": [{"ns": "d.c"}],
            },
            "admin",
        ),
        "renameCollection" => (doc! { name: "d.c", "to": "d.e" }, "admin"),
        "cloneCollectionAsCapped" => (doc! { name: "c", "toCollection": "e", "size": 4096 }, "d"),
        "createUser" | "updateUser" => (doc! { name: "x", "roles": [], "pwd": "x" }, "d").take_roles(name),
        "grantRolesToUser" | "revokeRolesFromUser" | "grantRolesToRole" | "revokeRolesFromRole" => {
            (doc! { name: "x", "roles": [Value::from(role())] }, "d")
        }
        "createRole" | "updateRole" => (
            doc! { name: "x", "roles": [Value::from(role())], "privileges": [Value::from(privilege())] },
            "d",
        ),
        "grantPrivilegesToRole" | "revokePrivilegesFromRole" => {
            (doc! { name: "x", "privileges": [Value::from(privilege())] }, "d")
        }
        "listDatabases" => (doc! { name: 1, "authorizedDatabases": false }, "admin"),
        "validateDBMetadata" => (doc! { name: 1, "db": "d" }, "d"),
        "updateZoneKeyRange" => (doc! { name: "d.c" }, "admin"),
        "usersInfo" | "rolesInfo" | "profile" | "listCollections" => (doc! { name: 1 }, "d"),
        "killOp" => (doc! { name: 1, "op": 77 }, "admin"),
        _ => match row.needs {
            Needs::Cluster(_) => (doc! { name: 1 }, "admin"),
            Needs::Database(_) => (doc! { name: 1 }, "d"),
            Needs::DatabaseNamed(_) => (doc! { name: "d" }, "admin"),
            Needs::Namespace(_) => (doc! { name: "d.c" }, "d"),
            _ => (doc! { name: "c" }, "d"),
        },
    }
}

trait TakeRoles {
    fn take_roles(self, name: &str) -> (Document, &'static str);
}
impl TakeRoles for (Document, &'static str) {
    /// An update with roles replaces all, which asks for more than the database.
    fn take_roles(mut self, name: &str) -> (Document, &'static str) {
        if name == "updateUser" {
            self.0.remove("roles");
        }
        self
    }
}

fn service(program: Program) -> Service {
    Service::new(Options::defaults(program), Arc::new(Logger::silent()), 27017, None)
}

fn holder(role: &str) -> User {
    let db = if builtin::exists(role, "d") { "d" } else { "admin" };
    let mut user = User::nobody(builtin::privileges(role, db).unwrap());
    user.roles = vec![RoleName::new(role, db)];
    user.name = UserName::new("holder", "d");
    user
}

/// The letters of the roles that may run the row's request.
fn letters(service: &Service, row: &'static Command) -> String {
    let (body, db) = request(row);
    let body = body.to_doc_buf();
    let node = node::request::Request { db, body: body.doc(), sequences: &[] };
    let request = Request { command: row, name: row.name, node, exhaust_allowed: false, comment: None };
    let may = |role: &str| Asker { service, user: &holder(role), request: &request }.satisfies(row.needs);
    LETTERS.iter().filter(|(_, role)| may(role)).map(|(letter, _)| *letter).collect()
}

fn sorted(letters: &str) -> String {
    let mut letters: Vec<char> = letters.chars().collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

#[test]
fn built_in_roles_allow_what_the_manual_says_on_nodes_and_routers() {
    let mut wrong = Vec::new();
    for program in [Program::Mongod, Program::Mongos] {
        let service = service(program);
        for row in service.commands().rows().iter().filter(|row| row.requires_auth) {
            let expected = ALLOWED.iter().find(|(names, _)| names.split(' ').any(|n| n == row.name));
            let Some((_, expected)) = expected else {
                if !matches!(row.needs, Needs::Member | Needs::Login) && !BY_OWNER.contains(&row.name) {
                    wrong.push(format!("{} is in no line of the table", row.name));
                }
                continue;
            };
            let found = letters(&service, row);
            if sorted(&found) != sorted(expected) {
                wrong.push(format!("{} on a {}: {found}, not {expected}", row.name, program.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a user may do to its own, whatever its roles.
const BY_OWNER: &[&str] = &["getMore", "killCursors", "killSessions", "_getUserCacheGeneration"];

#[test]
fn rows_that_say_nothing_are_for_members() {
    for program in [Program::Mongod, Program::Mongos] {
        let service = service(program);
        for row in service.commands().rows().iter().filter(|row| row.requires_auth) {
            let internal = row.name.starts_with('_') || MEMBERS.contains(&row.name);
            let member = matches!(row.needs, Needs::Member);
            assert!(internal || !member, "{} says nothing of what it needs", row.name);
            let missing = matches!(row.handler, Handler::Missing);
            assert!(!member || missing || letters(&service, row).is_empty(), "{}", row.name);
        }
    }
}

/// Commands between nodes whose names do not begin with `_`.
const MEMBERS: &[&str] = &[
    "autoSplitVector",
    "coordinateCommitTransaction",
    "getShardingReady",
    "prepareTransaction",
    "splitChunk",
];

/// Whether a holder of `role` may run the aggregation.
fn may_aggregate(role: &str, pipeline: Value) -> bool {
    let service = service(Program::Mongod);
    let (_, row) = service.commands().find(b"aggregate").unwrap();
    let body = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} }.to_doc_buf();
    let node = node::request::Request { db: "d", body: body.doc(), sequences: &[] };
    let request = Request { command: row, name: row.name, node, exhaust_allowed: false, comment: None };
    Asker { service: &service, user: &holder(role), request: &request }.satisfies(row.needs)
}

#[test]
fn every_stage_is_asked_for_wherever_it_stands() {
    let lookup = || doc! { "$lookup": { "from": { "db": "x", "coll": "y" }, "as": "z", "pipeline": [] } };
    for (pipeline, read, read_write, any) in [
        (array![], true, true, true),
        (array![{"$out": "t"}], false, true, false),
        (array![{"$merge": {"into": "t"}}], false, true, false),
        (array![{"$merge": {"into": {"db": "x", "coll": "t"}}}], false, false, false),
        (array![Value::from(lookup())], false, false, true),
        (array![{"$facet": {"f": [Value::from(lookup())]}}], false, false, true),
        (array![{"$unionWith": {"db": "x", "coll": "y"}}], false, false, true),
        (array![{"$unionWith": {"db": "d", "coll": "y"}}], true, true, true),
        (array![{"$unionWith": {"coll": "e", "pipeline": [Value::from(lookup())]}}], false, false, true),
        (array![{"$lookup": {"from": "e", "as": "x", "pipeline": [{"$unionWith": "f"}]}}], true, true, true),
        (array![{"$graphLookup": {"from": "system.users"}}], false, false, false),
        (array![{"$collStats": {}}], true, true, true),
        (array![{"$indexStats": {}}], false, false, false),
        (array![{"$currentOp": {"allUsers": true}}], false, false, false),
        (array![{"$currentOp": {}}], true, true, true),
        (array![{"$listSessions": {"allUsers": true}}], false, false, false),
        (array![{"$listSessions": {}}], true, true, true),
        (array![{"$changeStream": {}}], true, true, true),
        (array![{"$changeStream": {"allChangesForCluster": true}}], false, false, true),
        (array![{"$_internalSetWindowFields": {}}], false, false, false),
        (array![{"$mergeCursors": {}}], false, false, false),
    ] {
        let found =
            ["read", "readWrite", "readAnyDatabase"].map(|role| may_aggregate(role, pipeline.clone()));
        assert_eq!(found, [read, read_write, any], "{pipeline:?}");
    }
}

/// A node on which users are checked.
struct Node {
    running: Running,
    _dir: tempfile::TempDir,
}

impl Node {
    async fn start(f: impl FnOnce(&mut Options), key: Option<Arc<ClusterKey>>) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::defaults(Program::Mongod);
        options.port = 0;
        options.unix_socket = false;
        options.auth = true;
        options.dbpath = dir.path().to_path_buf();
        options.set_parameters = ["scramIterationCount", "scramSHA256IterationCount"]
            .map(|name| (name.to_string(), "5000".to_string()))
            .to_vec();
        f(&mut options);
        let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true, key };
        Node { running: Service::start(config).await.unwrap(), _dir: dir }
    }
    /// With a user `root`, password `p`.
    async fn with_root() -> Node {
        let node = Node::start(|_| {}, None).await;
        let root = doc! { "createUser": "root", "pwd": "p", "roles": ["root"] };
        run(&mut node.connect().await, root).await.unwrap();
        node
    }
    async fn connect(&self) -> Connection {
        Connection::connect(&format!("127.0.0.1:{}", self.running.port())).await.unwrap()
    }
    async fn try_log_in(&self, user: &str, db: &str, password: &str) -> document::Result<Connection> {
        let credentials = Credentials::new(user, db, vec![password.to_string()]);
        let options =
            ConnectOptions { credentials: Some(Arc::new(credentials)), ..ConnectOptions::default() };
        Connection::connect_with(&format!("127.0.0.1:{}", self.running.port()), &options).await
    }
    async fn root(&self) -> Connection {
        self.try_log_in("root", "admin", "p").await.unwrap()
    }
    /// A new user of `admin` with these roles, logged in.
    async fn user(&self, name: &str, roles: Value) -> Connection {
        let user = doc! { "createUser": name, "pwd": "q", "roles": roles };
        run(&mut self.root().await, user).await.unwrap();
        self.try_log_in(name, "admin", "q").await.unwrap()
    }
}

async fn run(c: &mut Connection, command: Document) -> document::Result<Document> {
    run_on(c, "admin", command).await
}
async fn run_on(c: &mut Connection, db: &str, command: Document) -> document::Result<Document> {
    c.run(db, command.to_doc_buf()).await.map(|reply: DocBuf| reply.to_document())
}
async fn code(c: &mut Connection, db: &str, command: Document) -> i32 {
    run_on(c, db, command).await.map_or_else(|e| e.code, |_| 0)
}

#[tokio::test]
async fn before_login_a_node_answers_little_and_on_this_machine_makes_the_first_user() {
    let node = Node::start(|_| {}, None).await;
    let mut c = node.connect().await;
    for (command, expected) in [
        (doc! {"ping": 1}, 0),
        (doc! {"buildInfo": 1}, 0),
        (doc! {"connectionStatus": 1}, 0),
        (doc! {"logout": 1}, 0),
        (doc! {"nosuch": 1}, 59),
        // Under the exception it is the rights that are missing.
        (doc! {"find": "c"}, 13),
        (doc! {"serverStatus": 1}, 13),
        (doc! {"createUser": "u", "pwd": "p", "roles": ["root"]}, 0),
        (doc! {"createUser": "v", "pwd": "p", "roles": ["root"]}, 13),
    ] {
        assert_eq!(code(&mut c, "admin", command.clone()).await, expected, "{command:?}");
    }
    let error = run(&mut c, doc! {"find": "c"}).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (13, "Command find requires authentication"));
    let refused = node.try_log_in("u", "admin", "wrong").await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (18, "Authentication failed."));
    let mut u = node.try_log_in("u", "admin", "p").await.unwrap();
    run(&mut u, doc! {"insert": "c", "documents": [{"_id": 1}]}).await.unwrap();
    let status = run(&mut u, doc! {"connectionStatus": 1}).await.unwrap();
    let roles = status.get_path("authInfo.authenticatedUserRoles").and_then(Value::as_array).unwrap();
    assert_eq!(roles[0], Value::from(doc! {"role": "root", "db": "admin"}));
    run(&mut u, doc! {"logout": 1}).await.unwrap();
    assert_eq!(code(&mut u, "admin", doc! {"find": "c"}).await, codes::UNAUTHORIZED);
    node.running.stop().await;
}

#[tokio::test]
async fn the_exception_can_be_switched_off() {
    let off = |o: &mut Options| {
        o.set_parameters.push(("enableLocalhostAuthBypass".to_string(), "false".to_string()));
    };
    let node = Node::start(off, None).await;
    let create = doc! {"createUser": "u", "pwd": "p", "roles": []};
    let error = run(&mut node.connect().await, create).await.unwrap_err();
    assert_eq!(error.message, "Command createUser requires authentication");
    node.running.stop().await;
}

#[tokio::test]
async fn a_conversation_goes_forward_step_by_step_or_not_at_all() {
    let node = Node::with_root().await;
    let mut c = node.connect().await;
    let bytes = |text: &str| document::Binary { subtype: 0, bytes: text.as_bytes().to_vec() };
    let start = |user: &str| {
        doc! {
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": Value::Binary(bytes(&format!("n,,n={user},r=abcdefgh"))),
        }
    };
    let go_on = |id: i32| doc! {"saslContinue": 1, "conversationId": id, "payload": Value::Binary(bytes("c=biws,r=x,p=x"))};
    assert_eq!(code(&mut c, "admin", go_on(1)).await, 17);
    // Somebody who is not there is answered like somebody who is, each time with the same salt.
    let salt = |reply: Document| match reply.get("payload") {
        Some(Value::Binary(b)) => {
            let text = String::from_utf8(b.bytes.clone()).unwrap();
            text.split(',').find(|f| f.starts_with("s=")).unwrap().to_string()
        }
        other => panic!("{other:?}"),
    };
    let first = salt(run(&mut c, start("nobody")).await.unwrap());
    assert_eq!(first, salt(run(&mut c, start("nobody")).await.unwrap()));
    let known = run(&mut c, start("root")).await.unwrap();
    assert_eq!((known.get_i64("conversationId"), known.get_bool("done")), (Some(1), Some(false)));
    assert_eq!(code(&mut c, "admin", go_on(2)).await, 17);
    assert_eq!(code(&mut c, "admin", go_on(1)).await, 17, "an error ends the conversation");
    run(&mut c, start("root")).await.unwrap();
    assert_eq!(code(&mut c, "admin", go_on(1)).await, 18);
    assert_eq!(code(&mut c, "admin", go_on(1)).await, 17);
    let mut other = start("root");
    other.insert("mechanism", "PLAIN");
    assert_eq!(code(&mut c, "admin", other).await, 334);
    assert_eq!(code(&mut c, "$external", start("root")).await, 334);
    assert_eq!(code(&mut c, "local", start("__system")).await, 0);
    assert_eq!(code(&mut c, "local", go_on(1)).await, 18);
    // A second user has no place on a connection, the same one has.
    let mut root = node.root().await;
    assert_eq!(code(&mut root, "admin", start("root")).await, 0);
    assert_eq!(code(&mut root, "admin", start("other")).await, 5626701);
    assert_eq!(code(&mut root, "d", start("other")).await, 5626702);
    node.running.stop().await;
}

#[tokio::test]
async fn what_is_granted_revoked_and_dropped_counts_from_the_next_request_on() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let mut u = node.user("u", array![]).await;
    let find = doc! {"find": "c", "batchSize": 1};
    assert_eq!(code(&mut u, "d", find.clone()).await, 13);
    let role = array![{"role": "readWrite", "db": "d"}];
    run(&mut root, doc! {"grantRolesToUser": "u", "roles": role.clone()}).await.unwrap();
    run_on(&mut u, "d", doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]})
        .await
        .unwrap();
    let opened = run_on(&mut u, "d", find.clone()).await.unwrap();
    let id = opened.get_path("cursor.id").and_then(Value::as_i64).unwrap();
    let more = doc! {"getMore": id, "collection": "c", "batchSize": 1};
    let mut other = node.user("other", array![{"role": "readWrite", "db": "d"}]).await;
    assert_eq!(code(&mut other, "d", more.clone()).await, 13, "the cursor of another user");
    assert_eq!(code(&mut other, "d", doc! {"killCursors": "c", "cursors": [id]}).await, 13);
    run_on(&mut u, "d", more.clone()).await.unwrap();
    run(&mut root, doc! {"revokeRolesFromUser": "u", "roles": role.clone()}).await.unwrap();
    assert_eq!(code(&mut u, "d", more).await, 13, "the right to the cursor's command is gone");
    // By a role of its own, whose privileges come and go.
    let privilege = array![{"resource": {"db": "d", "collection": "c"}, "actions": ["find"]}];
    run(&mut root, doc! {"createRole": "mine", "privileges": privilege.clone(), "roles": []}).await.unwrap();
    run(&mut root, doc! {"grantRolesToUser": "u", "roles": ["mine"]}).await.unwrap();
    assert_eq!(code(&mut u, "d", find.clone()).await, 0);
    run(&mut root, doc! {"revokePrivilegesFromRole": "mine", "privileges": privilege}).await.unwrap();
    assert_eq!(code(&mut u, "d", find.clone()).await, 13);
    run(&mut root, doc! {"dropRole": "mine"}).await.unwrap();
    let shown = run(&mut root, doc! {"usersInfo": "u"}).await.unwrap();
    let user = shown.get_array("users").and_then(|l| l[0].as_document()).unwrap();
    assert_eq!(user.get_array("roles").map(Vec::len), Some(0));
    // Another user of the same name is another user.
    run(&mut root, doc! {"grantRolesToUser": "u", "roles": role.clone()}).await.unwrap();
    assert_eq!(code(&mut u, "d", find.clone()).await, 0);
    run(&mut root, doc! {"dropUser": "u"}).await.unwrap();
    run(&mut root, doc! {"createUser": "u", "pwd": "q", "roles": role}).await.unwrap();
    let error = run_on(&mut u, "d", find).await.unwrap_err();
    assert_eq!(error.message, "Command find requires authentication");
    node.running.stop().await;
}

#[tokio::test]
async fn users_and_roles_are_refused_for_the_real_reasons() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    run_on(&mut root, "d", doc! {"createUser": "u", "pwd": "p", "roles": []}).await.unwrap();
    run_on(&mut root, "d", doc! {"createRole": "one", "privileges": [], "roles": []}).await.unwrap();
    run_on(&mut root, "d", doc! {"createRole": "two", "privileges": [], "roles": ["one"]}).await.unwrap();
    let cluster = || array![{"resource": {"cluster": true}, "actions": ["find"]}];
    for (command, expected) in [
        (doc! {"createUser": "u", "pwd": "p", "roles": []}, 51003),
        (doc! {"createUser": "v", "roles": []}, 2),
        (doc! {"createUser": "v", "pwd": "p"}, 40414),
        (doc! {"createUser": "v", "pwd": 1, "roles": []}, 14),
        (doc! {"createUser": "v", "pwd": "p", "roles": ["nosuch"]}, 31),
        (doc! {"createUser": "v", "pwd": "p", "roles": [], "x": 1}, 40415),
        (doc! {"createUser": "", "pwd": "p", "roles": []}, 2),
        (doc! {"createUser": "v", "pwd": "p", "roles": [], "mechanisms": []}, 2),
        (doc! {"createUser": "v", "pwd": "p", "roles": [], "mechanisms": ["PLAIN"]}, 2),
        (
            doc! {"createUser": "v", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-256"], "digestPassword": false},
            2,
        ),
        (doc! {"createUser": "v", "pwd": "p", "roles": [], "authenticationRestrictions": [{}]}, 2),
        (doc! {"updateUser": "u"}, 2),
        (doc! {"updateUser": "nobody", "pwd": "p"}, 11),
        (doc! {"updateUser": "u", "mechanisms": ["SCRAM-SHA-1"]}, 0),
        (doc! {"updateUser": "u", "mechanisms": ["SCRAM-SHA-256"]}, 2),
        (doc! {"dropUser": "nobody"}, 11),
        (doc! {"grantRolesToUser": "u", "roles": []}, 2),
        (doc! {"grantRolesToUser": "nobody", "roles": ["read"]}, 11),
        (doc! {"createRole": "one", "privileges": [], "roles": []}, 51002),
        (doc! {"createRole": "read", "privileges": [], "roles": []}, 2),
        (doc! {"createRole": "three", "roles": []}, 40414),
        (doc! {"createRole": "three", "privileges": cluster(), "roles": []}, 49),
        (doc! {"createRole": "three", "privileges": [], "roles": [{"role": "read", "db": "e"}]}, 49),
        (
            doc! {"createRole": "three", "privileges": [{"resource": {"db": "d", "collection": ""}, "actions": ["x"]}], "roles": []},
            9,
        ),
        (doc! {"grantRolesToRole": "one", "roles": ["two"]}, 49),
        (doc! {"grantRolesToRole": "one", "roles": ["one"]}, 49),
        (doc! {"grantRolesToRole": "read", "roles": ["one"]}, 2),
        (doc! {"updateRole": "one"}, 2),
        (doc! {"updateRole": "nosuch", "roles": []}, 31),
        (doc! {"dropRole": "nosuch"}, 31),
        (doc! {"dropRole": "read"}, 2),
        (doc! {"usersInfo": 1, "showPrivileges": true}, 20),
        (doc! {"rolesInfo": 1, "showPrivileges": "asUserFragment"}, 20),
    ] {
        assert_eq!(code(&mut root, "d", command.clone()).await, expected, "{command:?}");
    }
    assert_eq!(code(&mut root, "local", doc! {"createUser": "v", "pwd": "p", "roles": []}).await, 2);
    assert_eq!(code(&mut root, "$external", doc! {"createUser": "v", "pwd": "p", "roles": []}).await, 2);
    assert_eq!(code(&mut root, "$external", doc! {"createUser": "CN=v", "roles": []}).await, 0);
    let gone = run_on(&mut root, "d", doc! {"dropAllRolesFromDatabase": 1}).await.unwrap();
    assert_eq!(gone.get_i64("n"), Some(2));
    let gone = run_on(&mut root, "d", doc! {"dropAllUsersFromDatabase": 1}).await.unwrap();
    assert_eq!(gone.get_i64("n"), Some(1));
    node.running.stop().await;
}

#[tokio::test]
async fn everybody_sees_its_own_and_not_what_others_have() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    for db in ["d", "e"] {
        for name in ["c", "other"] {
            run_on(&mut root, db, doc! {"insert": name, "documents": [{"_id": 1}]}).await.unwrap();
        }
    }
    let privilege = array![{"resource": {"db": "d", "collection": "c"}, "actions": ["find"]}];
    run(&mut root, doc! {"createRole": "mine", "privileges": privilege, "roles": []}).await.unwrap();
    let mut u = node.user("u", array!["mine"]).await;
    let names = |reply: &Document, path: &str| -> Vec<String> {
        let list = reply.get_path(path).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(|v| v.as_document()?.get_str("name").map(str::to_string)).collect()
    };
    let found = run(&mut u, doc! {"listDatabases": 1}).await.unwrap();
    assert_eq!(names(&found, "databases"), ["d"]);
    let list = doc! {"listCollections": 1, "nameOnly": true, "authorizedCollections": true};
    let found = run_on(&mut u, "d", list.clone()).await.unwrap();
    assert_eq!(names(&found, "cursor.firstBatch"), ["c"]);
    assert_eq!(code(&mut u, "e", list).await, 13);
    assert_eq!(code(&mut u, "d", doc! {"listCollections": 1}).await, 13);
    for (command, expected) in [
        (doc! {"usersInfo": "u"}, 0),
        (doc! {"usersInfo": "root"}, 13),
        (doc! {"rolesInfo": "mine"}, 0),
        (doc! {"rolesInfo": "root"}, 13),
        (doc! {"currentOp": 1, "$ownOps": true}, 0),
        (doc! {"currentOp": 1}, 13),
        (doc! {"killOp": 1, "op": 1}, 13),
        (doc! {"updateUser": "u", "pwd": "new"}, 13),
        (doc! {"updateUser": "u", "mechanisms": ["SCRAM-SHA-1"]}, 13),
        (
            doc! {"ping": 1, "lsid": {"id": Value::uuid([1; 16]), "uid": document::Binary { subtype: 0, bytes: vec![1; 32] }}},
            13,
        ),
        (doc! {"listDatabases": 1, "$audit": {}}, 13),
        (doc! {"replSetHeartbeat": "rs"}, 13),
        (doc! {"_recvChunkStart": "d.c"}, 13),
    ] {
        assert_eq!(code(&mut u, "admin", command.clone()).await, expected, "{command:?}");
    }
    // A view shows what its maker could see.
    let view = doc! {"create": "v", "viewOn": "other", "pipeline": []};
    let maker = array![{"resource": {"db": "d", "collection": "v"}, "actions": ["find", "createCollection"]}];
    run(&mut root, doc! {"grantPrivilegesToRole": "mine", "privileges": maker}).await.unwrap();
    assert_eq!(code(&mut u, "d", view.clone()).await, 13);
    run_on(&mut root, "d", view).await.unwrap();
    assert_eq!(code(&mut u, "d", doc! {"find": "v"}).await, 0);
    assert_eq!(code(&mut u, "d", doc! {"find": "other"}).await, 13);
    node.running.stop().await;
}

#[tokio::test]
async fn restrictions_hold_at_login_and_afterwards() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let elsewhere = array![{"clientSource": ["10.9.9.0/24"]}];
    let create = doc! {"createUser": "u", "pwd": "q", "roles": ["read"], "authenticationRestrictions": elsewhere.clone()};
    run(&mut root, create).await.unwrap();
    assert_eq!(node.try_log_in("u", "admin", "q").await.unwrap_err().code, 18);
    run(&mut root, doc! {"updateUser": "u", "authenticationRestrictions": []}).await.unwrap();
    let mut u = node.try_log_in("u", "admin", "q").await.unwrap();
    assert_eq!(code(&mut u, "admin", doc! {"find": "c"}).await, 0);
    let role =
        doc! {"createRole": "far", "privileges": [], "roles": [], "authenticationRestrictions": elsewhere};
    run(&mut root, role).await.unwrap();
    run(&mut root, doc! {"grantRolesToUser": "u", "roles": ["far"]}).await.unwrap();
    assert_eq!(code(&mut u, "admin", doc! {"find": "c"}).await, 13);
    node.running.stop().await;
}

#[tokio::test]
async fn a_long_message_before_login_ends_the_connection() {
    let node = Node::with_root().await;
    let long = || doc! {"ping": 1, "comment": "x".repeat(20_000)};
    assert!(run(&mut node.connect().await, long()).await.is_err_and(|e| e.code != 40415));
    let mut root = node.root().await;
    assert!(run(&mut root, long()).await.is_ok());
    node.running.stop().await;
}

#[tokio::test]
async fn members_are_those_who_have_the_key() {
    let key = ClusterKey::new(vec!["oldkey".to_string(), "newkey".to_string()]);
    for auth in [true, false] {
        let node = Node::start(|o| o.auth = auth, Some(key.clone())).await;
        let address = format!("127.0.0.1:{}", node.running.port());
        let member = |keys: &[&str]| ConnectOptions {
            internal_client: Some(doc! {"minWireVersion": 0, "maxWireVersion": 25}),
            credentials: Some(ClusterKey::new(keys.iter().map(|k| k.to_string()).collect()).credentials()),
            ..ConnectOptions::default()
        };
        let internal = || doc! {"_shardsvrDropCollection": "c"};
        for keys in [&["oldkey"][..], &["newkey"], &["wrong1", "newkey"]] {
            let mut c = Connection::connect_with(&address, &member(keys)).await.unwrap();
            assert_eq!(
                code(&mut c, "d", internal()).await,
                codes::SHARDING_STATE_NOT_INITIALIZED,
                "{keys:?}"
            );
        }
        assert_eq!(Connection::connect_with(&address, &member(&["wrong1"])).await.unwrap_err().code, 18);
        // To say that one is a member is not enough.
        let claims = ConnectOptions { credentials: None, ..member(&[]) };
        let mut c = Connection::connect_with(&address, &claims).await.unwrap();
        assert_eq!(code(&mut c, "d", internal()).await, codes::UNAUTHORIZED);
        assert_eq!(code(&mut node.connect().await, "d", internal()).await, codes::UNAUTHORIZED);
        node.running.stop().await;
    }
    // Without a key there is nothing to prove; a client that is no node is refused all the same.
    let node = Node::start(|o| o.auth = false, None).await;
    assert_eq!(code(&mut node.connect().await, "d", doc! {"_shardsvrDropCollection": "c"}).await, 13);
    node.running.stop().await;
}

#[test]
fn roles_of_a_cluster_are_those_of_this_table() {
    let named: Vec<&str> = LETTERS.iter().map(|(_, role)| *role).collect();
    for role in builtin::names("admin") {
        let special =
            matches!(role, "__system" | "__queryableBackup" | "searchCoordinator" | "directShardOperations");
        assert!(special || named.contains(&role), "{role}");
    }
}

/// The rows of a `$currentOp` or `$listLocalSessions` stage.
async fn rows(c: &mut Connection, name: &str, spec: Document) -> Vec<Value> {
    let stage = doc! { name: spec };
    let reply = run(c, doc! {"aggregate": 1, "pipeline": [stage], "cursor": {}}).await.unwrap();
    reply.get_path("cursor.firstBatch").and_then(Value::as_array).unwrap().to_vec()
}

#[tokio::test]
async fn a_user_sees_its_own_operations_cursors_and_sessions() {
    let node = Node::with_root().await;
    let (mut root, mut u) = (node.root().await, node.user("u", array![]).await);
    let documents = array![{"_id": 1}, {"_id": 2}, {"_id": 3}];
    run(&mut root, doc! {"insert": "c", "documents": documents}).await.unwrap();
    let open = || doc! {"find": "c", "batchSize": 1, "lsid": {"id": Value::uuid([7; 16])}};
    run(&mut root, open()).await.unwrap();
    let all = || doc! {"idleConnections": true, "idleCursors": true};
    assert_eq!(rows(&mut u, "$currentOp", all()).await.len(), 1);
    let whole = doc! {"idleConnections": true, "idleCursors": true, "allUsers": true};
    assert!(rows(&mut root, "$currentOp", whole).await.len() >= 3);
    let own = run(&mut u, doc! {"currentOp": 1, "$ownOps": true, "$all": true}).await.unwrap();
    assert_eq!(own.get_array("inprog").unwrap().len(), 1);
    assert_eq!(code(&mut u, "admin", doc! {"currentOp": 1}).await, 13);
    // Root's session is nothing to a user, by whatever name it asks.
    assert_eq!(rows(&mut root, "$listLocalSessions", doc! {}).await.len(), 1);
    assert_eq!(rows(&mut u, "$listLocalSessions", doc! {}).await.len(), 0);
    run(&mut u, doc! {"startSession": 1}).await.unwrap();
    assert_eq!(rows(&mut u, "$listLocalSessions", doc! {}).await.len(), 1);
    let of_u = doc! {"users": [{"user": "u", "db": "admin"}]};
    assert_eq!(rows(&mut root, "$listLocalSessions", of_u).await.len(), 1);
    assert_eq!(rows(&mut root, "$listLocalSessions", doc! {"allUsers": true}).await.len(), 2);
    for spec in [doc! {"allUsers": true}, doc! {"users": [{"user": "root", "db": "admin"}]}] {
        let command = doc! {"aggregate": 1, "pipeline": [{"$listLocalSessions": spec}], "cursor": {}};
        assert_eq!(code(&mut u, "admin", command).await, 13);
    }
    let both = doc! {"allUsers": true, "users": [{"user": "u", "db": "admin"}]};
    let command = doc! {"aggregate": 1, "pipeline": [{"$listLocalSessions": both}], "cursor": {}};
    assert_eq!(code(&mut root, "admin", command).await, codes::UNSUPPORTED_FORMAT);
    node.running.stop().await;
}

#[tokio::test]
async fn sessions_end_by_their_owner_or_by_who_may_end_all() {
    let node = Node::with_root().await;
    let (mut root, mut u) = (node.root().await, node.user("u", array!["read"]).await);
    let documents = array![{"_id": 1}, {"_id": 2}, {"_id": 3}];
    run(&mut root, doc! {"insert": "c", "documents": documents}).await.unwrap();
    let id = || doc! {"id": Value::uuid([7; 16])};
    let digest = |name: &str| {
        let digest = UserName::new(name, "admin").digest().to_vec();
        Value::Binary(document::Binary { subtype: 0, bytes: digest })
    };
    let of = |name: &str| doc! {"id": Value::uuid([7; 16]), "uid": digest(name)};
    async fn opened(c: &mut Connection) -> i64 {
        let find = doc! {"find": "c", "batchSize": 1, "lsid": {"id": Value::uuid([7; 16])}};
        run(c, find).await.unwrap().get_path("cursor.id").and_then(Value::as_i64).unwrap()
    }
    let more = |cursor: i64| doc! {"getMore": cursor, "collection": "c", "batchSize": 1, "lsid": {"id": Value::uuid([7; 16])}};
    // The same UUID is another session for each user.
    let (of_root, of_u) = (opened(&mut root).await, opened(&mut u).await);
    for name in ["endSessions", "killSessions", "refreshSessions"] {
        assert_eq!(code(&mut u, "admin", doc! {name: [of("root")]}).await, 13, "{name}");
        assert_eq!(code(&mut u, "admin", doc! {name: [of("u")]}).await, 0, "{name}");
    }
    assert_eq!(code(&mut u, "admin", more(of_u)).await, codes::CURSOR_NOT_FOUND);
    assert_eq!(code(&mut root, "admin", more(of_root)).await, 0);
    let of_u = opened(&mut u).await;
    run(&mut u, doc! {"killSessions": [id()]}).await.unwrap();
    assert_eq!(code(&mut u, "admin", more(of_u)).await, codes::CURSOR_NOT_FOUND);
    let of_u = opened(&mut u).await;
    assert_eq!(code(&mut u, "admin", doc! {"killAllSessions": []}).await, 13);
    run(&mut root, doc! {"killAllSessions": [{"user": "u", "db": "admin"}]}).await.unwrap();
    assert_eq!(code(&mut u, "admin", more(of_u)).await, codes::CURSOR_NOT_FOUND);
    let of_u = opened(&mut u).await;
    run(&mut root, doc! {"killSessions": [of("u")]}).await.unwrap();
    assert_eq!(code(&mut u, "admin", more(of_u)).await, codes::CURSOR_NOT_FOUND);
    let acting = doc! {"killAllSessionsByPattern": [{"users": [{"user": "u", "db": "admin"}]}]};
    assert_eq!(code(&mut root, "admin", acting).await, 13);
    assert_eq!(code(&mut root, "admin", more(of_root)).await, 0);
    node.running.stop().await;
}

/// `$clusterTime` of a reply: seconds and ticks, key, and all of it.
fn time_of(reply: &Document) -> (document::Timestamp, i64, Document) {
    let whole = reply.get_document("$clusterTime").expect("no $clusterTime").clone();
    let time = whole.get("clusterTime").and_then(Value::as_timestamp).unwrap();
    (time, whole.get_path("signature.keyId").and_then(Value::as_i64).unwrap(), whole)
}

#[tokio::test]
async fn a_cluster_time_of_a_client_must_be_signed() {
    let key = ClusterKey::new(vec!["somekey".to_string()]);
    let node = Node::start(|o| o.repl_set = Some("rs".to_string()), Some(key.clone())).await;
    let host = format!("127.0.0.1:{}", node.running.port());
    let mut c = node.connect().await;
    let config = doc! {"_id": "rs", "members": [{"_id": 0, "host": host.as_str()}]};
    run(&mut c, doc! {"replSetInitiate": config}).await.unwrap();
    let root = doc! {"createUser": "root", "pwd": "p", "roles": ["root"]};
    while code(&mut c, "admin", root.clone()).await == codes::NOT_WRITABLE_PRIMARY {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let mut root = node.root().await;
    let mut reply = run(&mut root, doc! {"ping": 1}).await.unwrap();
    while !reply.contains_key("$clusterTime") {
        assert!(!reply.contains_key("operationTime"));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        reply = run(&mut root, doc! {"ping": 1}).await.unwrap();
    }
    let (now, key_id, own) = time_of(&reply);
    assert_ne!(key_id, 0);
    assert_eq!(code(&mut root, "admin", doc! {"find": "c", "$clusterTime": own.clone()}).await, 0);
    let ahead = document::Timestamp { secs: now.secs + 1000, inc: 1 };
    let forged = |key_id: i64, hash: &[u8]| {
        let hash = Value::Binary(document::Binary { subtype: 0, bytes: hash.to_vec() });
        doc! {"find": "c", "$clusterTime": {"clusterTime": ahead, "signature": {"hash": hash, "keyId": key_id}}}
    };
    for (command, expected) in [
        (forged(0, &[0; 20]), codes::KEY_NOT_FOUND),
        (forged(key_id, &[0; 20]), codes::TIME_PROOF_MISMATCH),
        (forged(key_id, &[0; 19]), codes::BAD_VALUE),
        (doc! {"find": "c", "$clusterTime": {"clusterTime": ahead}}, 4),
        (doc! {"find": "c", "$clusterTime": {"clusterTime": ahead, "signature": 1}}, codes::TYPE_MISMATCH),
    ] {
        assert_eq!(code(&mut root, "admin", command.clone()).await, expected, "{command:?}");
    }
    // Before login a time without a proof says nothing, and one with a false proof is refused.
    let mut stranger = node.connect().await;
    let ping = |find: Document| doc! {"ping": 1, "$clusterTime": find.get("$clusterTime").cloned().unwrap()};
    assert_eq!(code(&mut stranger, "admin", ping(forged(0, &[0; 20]))).await, 0);
    assert_ne!(code(&mut stranger, "admin", ping(forged(key_id, &[1; 20]))).await, 0);
    assert!(time_of(&run(&mut root, doc! {"ping": 1}).await.unwrap()).0 < ahead);
    // A member need not prove anything, and what it brings is signed for others.
    let member = ConnectOptions { credentials: Some(key.credentials()), ..ConnectOptions::default() };
    let mut member = Connection::connect_with(&host, &member).await.unwrap();
    let reply = run(&mut member, ping(forged(0, &[0; 20]))).await.unwrap();
    assert_eq!((time_of(&reply).0 >= ahead, time_of(&reply).1), (true, 0));
    let (later, key_id, own) = time_of(&run(&mut root, doc! {"ping": 1}).await.unwrap());
    assert!(later >= ahead && key_id != 0);
    assert_eq!(code(&mut root, "admin", doc! {"find": "c", "$clusterTime": own}).await, 0);
    node.running.stop().await;
}

#[tokio::test]
async fn users_and_roles_are_taken_over_from_other_collections() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let mut u = node.user("u", array!["read"]).await;
    let found = run(&mut root, doc! {"find": "system.users", "filter": {"user": "u"}}).await.unwrap();
    let stored = found.get_path("cursor.firstBatch.0").cloned();
    let stored = stored.or_else(|| {
        let batch = found.get_path("cursor.firstBatch").and_then(Value::as_array)?;
        batch.first().cloned()
    });
    let Some(Value::Document(mut stored)) = stored else { panic!("{found:?}") };
    stored.insert("_id", "admin.v");
    stored.insert("user", "v");
    stored.insert("roles", array![{"role": "mine", "db": "admin"}]);
    let role = doc! {
        "_id": "admin.mine", "role": "mine", "db": "admin", "roles": [],
        "privileges": [{"resource": {"db": "d", "collection": ""}, "actions": ["find"]}],
    };
    for (name, documents) in [
        ("tempusers", array![Value::from(stored), {"user": "w", "db": "admin"}]),
        ("temproles", array![Value::from(role)]),
    ] {
        run(&mut root, doc! {"insert": name, "documents": documents}).await.unwrap();
    }
    let merge = |drop: bool| {
        doc! {
            "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "tempRolesCollection": "admin.temproles",
            "db": "", "drop": drop,
        }
    };
    assert_eq!(code(&mut u, "admin", merge(false)).await, 13);
    run(&mut root, merge(false)).await.unwrap();
    let mut v = node.try_log_in("v", "admin", "q").await.unwrap();
    assert_eq!(code(&mut v, "d", doc! {"find": "c"}).await, 0);
    assert_eq!(code(&mut v, "d", doc! {"insert": "c", "documents": [{}]}).await, 13);
    assert!(node.try_log_in("w", "admin", "q").await.is_err());
    node.try_log_in("u", "admin", "q").await.unwrap();
    run(&mut root, merge(true)).await.unwrap();
    assert!(node.try_log_in("u", "admin", "q").await.is_err());
    node.try_log_in("v", "admin", "q").await.unwrap();
    node.running.stop().await;
}

/// The document with a second field of that name.
fn twice(mut d: Document, name: &str, value: impl Into<Value>) -> Document {
    d.push(name, value.into());
    d
}

#[tokio::test]
async fn no_command_takes_a_field_twice() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let service = service(Program::Mongod);
    for row in service.commands().rows().iter().filter(|row| service.answers(row)) {
        let (body, db) = request(row);
        let body = twice(body, row.name, Value::Null);
        assert_eq!(code(&mut root, db, body).await, codes::IDL_DUPLICATE_FIELD, "{}", row.name);
    }
    node.running.stop().await;
}

/// A user `u` who may read `d.open` and `d.v` and create them, of a node on which there is a `d.secret`, too.
async fn reader_of_open(node: &Node) -> Connection {
    let mut root = node.root().await;
    for name in ["open", "secret"] {
        run_on(&mut root, "d", doc! {"insert": name, "documents": [{"_id": 1}]}).await.unwrap();
    }
    let on = |name: &str| doc! {"resource": {"db": "d", "collection": name}, "actions": ["find", "insert", "createCollection"]};
    let privileges = vec![Value::from(on("open")), Value::from(on("v"))];
    run(&mut root, doc! {"createRole": "opened", "privileges": privileges, "roles": []}).await.unwrap();
    node.user("u", array!["opened"]).await
}

#[tokio::test]
async fn of_two_fields_none_is_taken() {
    let node = Node::with_root().await;
    let (mut u, mut root) = (reader_of_open(&node).await, node.root().await);
    let aggregate = |pipeline: Value| doc! {"aggregate": "open", "pipeline": pipeline, "cursor": {}};
    let both = twice(aggregate(array![]), "pipeline", array![{"$unionWith": "secret"}]);
    let view = doc! {"create": "v", "viewOn": Value::Null, "pipeline": []};
    let piped = doc! {"create": "v", "viewOn": "open", "pipeline": Value::Null};
    for command in [
        both.clone(),
        doc! {"explain": both},
        twice(view, "viewOn", "secret"),
        twice(piped, "pipeline", array![{"$unionWith": "secret"}]),
        twice(doc! {"killCursors": "open", "cursors": []}, "cursors", array![]),
    ] {
        assert_eq!(code(&mut u, "d", command.clone()).await, codes::IDL_DUPLICATE_FIELD, "{command:?}");
    }
    // Below the top, what runs the request refuses it.
    let union = twice(doc! {"coll": "open"}, "coll", "secret");
    let out = twice(doc! {"inline": 1}, "replace", "secret");
    let map_reduce = doc! {"mapReduce": "open", "map": "function() {}", "reduce": "function() {}"};
    let update = twice(doc! {"q": {}, "u": {"$set": {"a": 1}}, "upsert": Value::Null}, "upsert", true);
    for command in [
        aggregate(Value::Array(vec![doc! {"$unionWith": union}.into()])),
        twice(map_reduce.clone(), "out", twice(out, "replace", "open")),
        twice(map_reduce, "out", twice(doc! {"replace": "open", "db": "d"}, "db", "e")),
        doc! {"update": "open", "updates": Value::Array(vec![update.into()])},
    ] {
        assert_eq!(code(&mut root, "d", command.clone()).await, codes::IDL_DUPLICATE_FIELD, "{command:?}");
    }
    let stream = twice(doc! {"allChangesForCluster": false}, "allChangesForCluster", true);
    let stream = Value::Array(vec![doc! {"$changeStream": stream}.into()]);
    let insert = twice(doc! {"op": "i", "ns": "d.open", "o": {"_id": 9}}, "ns", "d.secret");
    let made = twice(doc! {"create": "w", "viewOn": "open", "pipeline": []}, "viewOn", "secret");
    let made = doc! {"op": "c", "ns": "d.$cmd", "o": made};
    for command in [
        doc! {"aggregate": 1, "pipeline": stream, "cursor": {}},
        doc! {"applyOps": Value::Array(vec![insert.into()])},
        doc! {"applyOps": Value::Array(vec![made.into()])},
    ] {
        assert_eq!(
            code(&mut root, "admin", command.clone()).await,
            codes::IDL_DUPLICATE_FIELD,
            "{command:?}"
        );
    }
    node.running.stop().await;
}

#[test]
fn a_bulk_write_is_asked_for_where_its_places_are_read_to_be() {
    for program in [Program::Mongod, Program::Mongos] {
        let service = service(program);
        let (_, row) = service.commands().find(b"bulkWrite").unwrap();
        let may = |role: &str, place: Value| {
            let body = doc! {
                "bulkWrite": 1, "ops": [{"insert": place, "document": {"_id": 1}}], "nsInfo": [{"ns": "d.c"}],
            };
            let body = body.to_doc_buf();
            let node = node::request::Request { db: "admin", body: body.doc(), sequences: &[] };
            let request =
                Request { command: row, name: row.name, node, exhaust_allowed: false, comment: None };
            Asker { service: &service, user: &holder(role), request: &request }.satisfies(row.needs)
        };
        for place in [Value::from(0), Value::from(0.5), Value::from(-0.5), Value::Int64(0)] {
            assert!(may("readWrite", place.clone()) && !may("read", place.clone()), "{place:?}");
        }
        assert!(!may("readWrite", "0".into()), "what cannot be read is refused");
    }
}

#[tokio::test]
async fn an_explanation_is_asked_for_in_the_database_that_it_runs_in() {
    let node = Node::with_root().await;
    let (mut u, mut root) = (reader_of_open(&node).await, node.root().await);
    run_on(&mut root, "e", doc! {"insert": "open", "documents": [{}]}).await.unwrap();
    let explain = |db: &str| doc! {"explain": {"find": "open", "$db": db}};
    assert_eq!(code(&mut u, "e", explain("d")).await, 13);
    assert_eq!(code(&mut u, "d", explain("d")).await, 0);
    assert_eq!(code(&mut root, "e", explain("d")).await, codes::INVALID_NAMESPACE);
    node.running.stop().await;
}

#[tokio::test]
async fn a_copy_of_a_database_makes_nothing_readable_that_was_not() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    run_on(&mut root, "secret", doc! {"insert": "c", "documents": [{"_id": 1}]}).await.unwrap();
    let privilege = |resource: Document, actions: &[&str]| doc! { "resource": resource, "actions": actions.iter().map(|a| Value::from(*a)).collect::<Vec<_>>() };
    let on = |db: &str| doc! { "db": db, "collection": "" };
    let copies = doc! {
        "createRole": "copies", "roles": [],
        "privileges": [
            privilege(doc! { "cluster": true }, &["applyOps", "forceUUID"]),
            privilege(on("mine"), &["find", "insert", "createCollection", "dropCollection"]),
            privilege(on("other"), &["find"]),
        ],
    };
    run_on(&mut root, "admin", copies).await.unwrap();
    let mut u = node.user("u", array!["copies"]).await;
    let fork = |from: &str, to: &str| doc! { "tesseraFork": from, "to": to };
    for (from, to) in [("secret", "mine"), ("other", "secret"), ("other", "third")] {
        assert_eq!(code(&mut u, "admin", fork(from, to)).await, 13, "{from} to {to}");
    }
    assert_ne!(code(&mut u, "admin", fork("other", "mine")).await, 13);
    for all in [doc! { "tesseraSnapshot": "s" }, doc! { "tesseraRestore": "s" }] {
        assert_eq!(code(&mut u, "admin", all).await, 13);
    }
    node.running.stop().await;
}

#[tokio::test]
async fn the_profiler_says_who_did_it_and_shows_no_password() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    run_on(&mut root, "d", doc! {"profile": 2}).await.unwrap();
    run_on(&mut root, "d", doc! {"createUser": "x", "pwd": "hush", "roles": []}).await.unwrap();
    let found = doc! {"find": "system.profile", "filter": {"command.createUser": "x"}};
    let found = run_on(&mut root, "d", found).await.unwrap();
    let rows = found.get_path("cursor.firstBatch").and_then(Value::as_array).unwrap();
    let row = rows[0].as_document().unwrap();
    assert_eq!(row.get_path("command.pwd").and_then(Value::as_str), Some("xxx"));
    assert_eq!(row.get_str("user"), Some("root@admin"));
    assert_eq!(row.get("allUsers"), Some(&array![{"user": "root", "db": "admin"}]));
    node.running.stop().await;
}

#[test]
fn what_proves_that_one_knows_a_password_is_shown_nowhere() {
    let service = service(Program::Mongod);
    for (name, secret) in [
        ("createUser", "pwd"),
        ("updateUser", "pwd"),
        ("saslStart", "payload"),
        ("saslContinue", "payload"),
        ("hello", "speculativeAuthenticate"),
        ("ismaster", "speculativeAuthenticate"),
    ] {
        let (_, row) = service.commands().find(name.as_bytes()).unwrap();
        let body = doc! { name: 1, secret: "hush", "comment": "c" }.to_doc_buf();
        assert_eq!(row.masked(body.doc()), doc! { name: 1, secret: "xxx", "comment": "c" });
        // A command that is refused since it has one twice is shown, too.
        let mut twice = doc! { name: 1, secret: "hush" };
        twice.push(secret, "silence");
        let mut shown = doc! { name: 1, secret: "xxx" };
        shown.push(secret, "xxx");
        assert_eq!(row.masked(twice.to_doc_buf().doc()), shown);
    }
    let (_, row) = service.commands().find(b"distinct").unwrap();
    let body = doc! { "distinct": "c", "key": "a" };
    assert_eq!(row.masked(body.to_doc_buf().doc()), body, "a key that opens nothing");
}

#[tokio::test]
async fn a_pattern_that_cannot_be_read_ends_no_sessions() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let binary = |bytes: Vec<u8>| Value::Binary(document::Binary { subtype: 0, bytes });
    for (pattern, expected) in [
        (doc! {"uid": binary(vec![1; 5])}, codes::UNSUPPORTED_FORMAT),
        (doc! {"uid": "u"}, codes::TYPE_MISMATCH),
        (doc! {"lsid": "u"}, codes::TYPE_MISMATCH),
        (doc! {"uid": binary(vec![1; 32])}, 0),
    ] {
        let command = doc! {"killAllSessionsByPattern": Value::Array(vec![pattern.clone().into()])};
        assert_eq!(code(&mut root, "admin", command).await, expected, "{pattern:?}");
    }
    node.running.stop().await;
}

#[tokio::test]
async fn a_list_of_users_is_shown_in_order_and_each_once() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    node.user("v", array![]).await;
    node.user("u", array![]).await;
    let shown = run(&mut root, doc! {"usersInfo": ["v", "u", "nobody", "v"]}).await.unwrap();
    let users = shown.get_array("users").unwrap().iter();
    let names: Vec<_> =
        users.map(|user| user.as_document().and_then(|d| d.get_str("user")).unwrap()).collect();
    assert_eq!(names, ["u", "v"]);
    node.running.stop().await;
}

#[tokio::test]
async fn the_right_to_end_cursors_is_that_on_what_they_read() {
    let node = Node::with_root().await;
    let mut root = node.root().await;
    let kills = array![{"resource": {"db": "d", "collection": "open"}, "actions": ["killAnyCursor"]}];
    run(&mut root, doc! {"createRole": "killer", "privileges": kills, "roles": []}).await.unwrap();
    let mut u = node.user("u", array!["killer"]).await;
    let mut opened = Vec::new();
    for name in ["open", "secret"] {
        let documents = array![{"_id": 1}, {"_id": 2}];
        run_on(&mut root, "d", doc! {"insert": name, "documents": documents}).await.unwrap();
        let reply = run_on(&mut root, "d", doc! {"find": name, "batchSize": 1}).await.unwrap();
        opened.push(reply.get_path("cursor.id").and_then(Value::as_i64).unwrap());
    }
    let kill = |id: i64| doc! {"killCursors": "open", "cursors": [Value::Int64(id)]};
    assert_eq!(code(&mut u, "d", kill(opened[1])).await, 13);
    assert_eq!(code(&mut u, "d", kill(opened[0])).await, 0);
    node.running.stop().await;
}

#[tokio::test]
async fn nobody_but_a_member_speaks_for_others_even_before_login() {
    let node = Node::with_root().await;
    let (mut stranger, mut root) = (node.connect().await, node.root().await);
    for name in ["ping", "hello"] {
        let command = || doc! {name: 1, "$audit": {"$impersonatedRoles": []}};
        assert_eq!(code(&mut stranger, "admin", command()).await, 13, "{name}");
        assert_eq!(code(&mut root, "admin", command()).await, 13, "{name}");
    }
    node.running.stop().await;
}

#[tokio::test]
async fn members_log_in_from_the_addresses_that_they_may_have() {
    let key = ClusterKey::new(vec!["somekey".to_string()]);
    for (list, expected) in [("10.9.9.0/24", Some(18)), ("10.9.9.0/24,127.0.0.1", None)] {
        let restrictions = node::auth::restriction::Restrictions::to_clients(list).unwrap();
        let node = Node::start(|o| o.member_restrictions = restrictions, Some(key.clone())).await;
        let member = ConnectOptions { credentials: Some(key.credentials()), ..ConnectOptions::default() };
        let address = format!("127.0.0.1:{}", node.running.port());
        let found = Connection::connect_with(&address, &member).await.err().map(|e| e.code);
        assert_eq!(found, expected, "{list}");
        node.running.stop().await;
    }
}

#[test]
fn nodes_with_one_key_pretend_the_same_salts() {
    let pretended = |keys: &[&str]| {
        let mut auth = Auth::new(true, None);
        auth.set_key(Some(ClusterKey::new(keys.iter().map(|key| key.to_string()).collect())));
        auth.pretended
    };
    assert_eq!(pretended(&["onekey"]), pretended(&["onekey"]));
    assert_eq!(pretended(&["onekey", "twokey"]), pretended(&["twokey", "onekey"]));
    assert_ne!(pretended(&["onekey"]), pretended(&["twokey"]));
    assert_ne!(Auth::new(true, None).pretended, Auth::new(true, None).pretended);
}
