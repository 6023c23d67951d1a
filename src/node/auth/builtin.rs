//! The built-in roles and their privileges, as the manual of version 8.0 lists them.
//!
//! The first six exist in every database but `$external`, the others in `admin` only.

use super::action::Action::{self, *};
use super::action::ActionSet;
use super::privilege::{Privilege, Privileges};
use super::resource::Resource;

const fn set(actions: &[Action]) -> ActionSet {
    ActionSet::of(actions)
}

const READ: ActionSet = set(&[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
]);
const READ_WRITE: ActionSet = READ.or(set(&[
    CleanupStructuredEncryptionData,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    Remove,
    RenameCollectionSameDB,
    Update,
    UpdateSearchIndex,
]));
const USER_ADMIN: ActionSet = set(&[
    ChangeCustomData,
    ChangePassword,
    CreateUser,
    CreateRole,
    DropUser,
    DropRole,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewUser,
    ViewRole,
]);
const DB_ADMIN: ActionSet = set(&[
    Analyze,
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConfigureQueryAnalyzer,
    ConvertToCapped,
    CreateCollection,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    CreateIndex,
    CreateSearchIndexes,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    UpdateSearchIndex,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    StorageDetails,
    Validate,
]);
const PROFILE: ActionSet = READ.or(set(&[ConvertToCapped, CreateCollection, DropCollection]));
const MONITORED: ActionSet = set(&[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats]);
const CHUNKS: ActionSet = set(&[
    AnalyzeShardKey,
    ConfigureQueryAnalyzer,
    ClearJumboFlag,
    SplitChunk,
    MoveChunk,
    MoveCollection,
    EnableSharding,
    SplitVector,
    RefineCollectionShardKey,
    ReshardCollection,
    UnshardCollection,
]);
const RESTORED: ActionSet = set(&[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    Insert,
    UpdateSearchIndex,
]);
const CLUSTER_MONITOR: ActionSet = set(&[
    ConnPoolStats,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    ListDatabases,
    ListSampledQueries,
    ListSessions,
    ListShards,
    Netstat,
    OperationMetrics,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    Top,
    UseUUID,
    Inprog,
    ShardingState,
    AllCollectionStats,
    ShardedDataDistribution,
]);
const HOST_MANAGER: ActionSet = set(&[
    ApplicationMessage,
    AuditConfigure,
    Compact,
    ConnPoolSync,
    DropConnections,
    LogRotate,
    OidReset,
    SetParameter,
    Shutdown,
    Touch,
    Unlock,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    ReplSetResizeOplog,
    Resync,
    TrafficRecord,
    RotateCertificates,
    OidcListKeys,
    OidcRefreshKeys,
]);
const CLUSTER_MANAGER: ActionSet = set(&[
    AppendOplogNote,
    ApplicationMessage,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetStateChange,
    Resync,
    AddShard,
    RemoveShard,
    ListSessions,
    ListShards,
    FlushRouterConfig,
    CleanupOrphaned,
    GetDefaultRWConcern,
    SetDefaultRWConcern,
    RunTenantMigration,
    SetFeatureCompatibilityVersion,
    SetClusterParameter,
    GetClusterParameter,
    SetChangeStreamState,
    GetChangeStreamState,
    QuerySettings,
    QueryStatsRead,
    QueryStatsReadTransformed,
    CheckMetadataConsistency,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
]);

/// Roles of every database.
pub const OF_DATABASES: &[&str] = &["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];
/// Roles of `admin` besides those.
pub const OF_ADMIN: &[&str] = &[
    "__queryableBackup",
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "directShardOperations",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "searchCoordinator",
    "userAdminAnyDatabase",
];

/// Whether a database has a built-in role of this name.
pub fn exists(role: &str, db: &str) -> bool {
    db != "$external" && (OF_DATABASES.contains(&role) || (db == "admin" && OF_ADMIN.contains(&role)))
}

/// The names of a database's built-in roles, sorted.
pub fn names(db: &str) -> Vec<&'static str> {
    let all = OF_DATABASES.iter().chain(OF_ADMIN);
    let mut names: Vec<&str> = all.copied().filter(|role| exists(role, db)).collect();
    names.sort_unstable();
    names
}

/// The privileges of a built-in role; `None` where there is no such role.
pub fn privileges(role: &str, db: &str) -> Option<Privileges> {
    exists(role, db).then(|| {
        let mut made = Made(Privileges::default());
        made.role(role, db);
        made.0
    })
}

/// Privileges in the making.
struct Made(Privileges);

impl Made {
    fn on(&mut self, resource: Resource, actions: ActionSet) {
        self.0.add(Privilege { resource, actions });
    }
    fn database(&mut self, db: &str, actions: ActionSet) {
        self.on(Resource::Database(db.to_string()), actions);
    }
    fn exact(&mut self, db: &str, collection: &str, actions: ActionSet) {
        self.on(Resource::Exact(db.to_string(), collection.to_string()), actions);
    }
    fn named(&mut self, collection: &str, actions: ActionSet) {
        self.on(Resource::Collection(collection.to_string()), actions);
    }
    /// Every normal collection, and the buckets of time series.
    fn everywhere(&mut self, actions: ActionSet) {
        self.on(Resource::AnyNormal, actions);
        self.on(Resource::Buckets(String::new(), String::new()), actions);
    }
    fn cluster(&mut self, actions: ActionSet) {
        self.on(Resource::Cluster, actions);
    }

    fn role(&mut self, role: &str, db: &str) {
        match role {
            "read" => self.in_database(db, READ),
            "readWrite" => self.in_database(db, READ_WRITE),
            "userAdmin" => self.database(db, USER_ADMIN),
            "dbAdmin" => {
                self.database(db, DB_ADMIN);
                self.exact(db, "system.profile", PROFILE);
            }
            "dbOwner" => ["readWrite", "dbAdmin", "userAdmin"].iter().for_each(|r| self.role(r, db)),
            "enableSharding" => self.on(
                Resource::AnyNormal,
                set(&[
                    AnalyzeShardKey,
                    EnableSharding,
                    MoveCollection,
                    RefineCollectionShardKey,
                    ReshardCollection,
                    UnshardCollection,
                ]),
            ),
            "readAnyDatabase" => self.any_database(READ),
            "readWriteAnyDatabase" => self.any_database(READ_WRITE),
            "userAdminAnyDatabase" => self.user_admin_any(),
            "dbAdminAnyDatabase" => {
                self.everywhere(DB_ADMIN);
                self.named("system.profile", PROFILE);
                self.cluster(set(&[ListDatabases, ApplyOps]));
            }
            "clusterMonitor" => self.cluster_monitor(),
            "hostManager" => {
                self.cluster(HOST_MANAGER);
                self.on(Resource::AnyNormal, set(&[KillCursors]));
            }
            "clusterManager" => self.cluster_manager(),
            "clusterAdmin" => self.cluster_admin(),
            "__queryableBackup" => self.queryable_backup(),
            "backup" => {
                self.queryable_backup();
                self.cluster(set(&[AppendOplogNote, ServerStatus, SetUserWriteBlockMode]));
                self.exact("config", "settings", set(&[Insert, Update]));
            }
            "restore" => self.restore(),
            "root" => self.root(),
            "directShardOperations" => self.cluster(set(&[IssueDirectShardOperations])),
            "searchCoordinator" => {
                self.any_database(READ);
                self.database("__mdb_internal_search", READ_WRITE);
                self.cluster(set(&[BypassDefaultMaxTimeMS]));
            }
            "__system" => self.on(Resource::Any, ActionSet::all()),
            _ => {}
        }
    }

    fn in_database(&mut self, db: &str, actions: ActionSet) {
        self.database(db, actions);
        self.exact(db, "system.js", actions);
    }
    fn any_database(&mut self, actions: ActionSet) {
        self.everywhere(actions);
        self.named("system.js", actions);
        self.cluster(set(&[ListDatabases]));
    }
    fn user_admin_any(&mut self) {
        self.on(Resource::AnyNormal, USER_ADMIN.or(set(&[ListCachedAndActiveUsers])));
        ["local", "config"].iter().for_each(|db| self.database(db, USER_ADMIN));
        self.cluster(set(&[ListDatabases, AuthSchemaUpgrade, InvalidateUserCache, ViewUser]));
        let indexed = READ.or(set(&[CreateIndex, CreateSearchIndexes, DropIndex, DropSearchIndex]));
        ["system.users", "system.roles"].iter().for_each(|name| self.exact("admin", name, indexed));
        self.named("system.users", READ);
        ["system.version", "system.backup_users"].iter().for_each(|name| self.exact("admin", name, READ));
    }
    fn cluster_monitor(&mut self) {
        ["config", "local"].iter().for_each(|db| self.in_database(db, READ));
        self.cluster(CLUSTER_MONITOR);
        self.on(Resource::AnyNormal, MONITORED);
        ["config", "local"].iter().for_each(|db| self.database(db, MONITORED));
        self.exact("config", "system.sessions", MONITORED);
        let found = ["system.replset", "replset.election", "replset.minvalid"];
        found.iter().for_each(|name| self.exact("local", name, set(&[Find])));
        self.named("system.profile", set(&[Find]));
    }
    fn cluster_manager(&mut self) {
        self.in_database("config", READ);
        self.cluster(CLUSTER_MANAGER);
        self.everywhere(CHUNKS);
        let written = set(&[Insert, Update, Remove]);
        ["config", "local"].iter().for_each(|db| self.database(db, CHUNKS.or(written)));
        ["replset.election", "replset.minvalid"].iter().for_each(|name| self.exact("local", name, written));
        ["system.replset", "system.healthlog"].iter().for_each(|name| self.exact("local", name, READ));
        self.on(Resource::Any, set(&[DbCheck]));
    }
    fn cluster_admin(&mut self) {
        ["clusterMonitor", "hostManager", "clusterManager"].iter().for_each(|r| self.role(r, "admin"));
        self.on(Resource::AnyNormal, set(&[Action::DropDatabase]));
        self.on(Resource::Any, set(&[ImportCollection, ExportCollection]));
    }
    fn queryable_backup(&mut self) {
        self.on(Resource::Any, set(&[CollStats, ListCollections, ListIndexes, ListSearchIndexes]));
        self.everywhere(set(&[Find]));
        ["config", "local"].iter().for_each(|db| self.database(db, set(&[Find])));
        self.cluster(set(&[GetParameter, ListDatabases, UseUUID]));
        ["replset.election", "replset.minvalid"].iter().for_each(|n| self.exact("local", n, set(&[Find])));
        ["system.js", "system.users", "system.profile"].iter().for_each(|n| self.named(n, set(&[Find])));
        let read = ["system.backup_users", "system.roles", "system.version"];
        read.iter().for_each(|n| self.exact("admin", n, set(&[Find])));
        self.exact("config", "settings", set(&[Find]));
    }
    fn restore(&mut self) {
        self.on(Resource::AnyNormal, RESTORED.or(USER_ADMIN));
        self.on(Resource::Buckets(String::new(), String::new()), RESTORED);
        ["config", "local"].iter().for_each(|db| self.database(db, RESTORED));
        let local = ["system.replset", "replset.election", "replset.minvalid"];
        local.iter().for_each(|n| self.exact("local", n, RESTORED));
        self.named("system.js", RESTORED);
        self.named("system.views", set(&[Action::DropCollection]));
        self.exact("admin", "system.backup_users", RESTORED);
        self.on(Resource::Any, set(&[ListCollections]));
        ["tempusers", "temproles"].iter().for_each(|n| self.exact("admin", n, set(&[Find])));
        self.exact("admin", "system.version", RESTORED.or(set(&[Find])));
        self.named("system.users", RESTORED.or(set(&[Find, Update, Remove])));
        self.exact("admin", "system.roles", set(&[CreateIndex]));
        self.cluster(set(&[
            GetParameter,
            ForceUUID,
            UseUUID,
            BypassWriteBlockingMode,
            SetUserWriteBlockMode,
            ApplyOps,
        ]));
    }
    fn root(&mut self) {
        let parts = [
            "clusterAdmin",
            "userAdminAnyDatabase",
            "dbAdminAnyDatabase",
            "readWriteAnyDatabase",
            "backup",
            "restore",
            "directShardOperations",
        ];
        parts.iter().for_each(|role| self.role(role, "admin"));
        self.on(Resource::Any, set(&[Validate]));
        self.cluster(set(&[UseTenant]));
        self.exact("config", "system.preimages", set(&[Find, Remove]));
        self.exact("config", "system.change_collection", set(&[Find, Insert, Remove, Update]));
    }
}

#[cfg(test)]
mod tests {
    use super::super::resource::Target;
    use super::*;

    #[test]
    fn roles_exist_where_the_manual_says() {
        assert_eq!(names("d"), OF_DATABASES);
        assert_eq!(names("admin").len(), OF_DATABASES.len() + OF_ADMIN.len());
        assert!(names("$external").is_empty());
        assert!(privileges("root", "d").is_none() && privileges("nosuch", "admin").is_none());
        for role in names("admin") {
            assert!(!privileges(role, "admin").unwrap().is_empty(), "{role}");
        }
    }

    #[test]
    fn root_is_not_the_system() {
        let root = privileges("root", "admin").unwrap();
        assert!(
            root.allow(&Target::Cluster, Shutdown)
                && root.allow(&Target::Cluster, IssueDirectShardOperations)
        );
        for action in [Internal, Impersonate, AdvanceClusterTime, ListCursors] {
            assert!(!root.allow(&Target::Cluster, action), "{}", action.name());
        }
        let oplog = Target::Namespace("local".to_string(), "oplog.rs".to_string());
        assert!(root.allow(&oplog, Find));
        assert!(privileges("__system", "admin").unwrap().allow(&Target::Cluster, Internal));
    }
}
