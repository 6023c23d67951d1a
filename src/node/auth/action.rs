//! The actions that a privilege can allow, by their names in role documents.

use document::{Result, Value, bail};

macro_rules! actions {
    ($($variant:ident $name:literal,)*) => {
        /// One thing that a user may be allowed to do to a resource.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Action { $($variant,)* }

        impl Action {
            /// Every action, sorted by name.
            pub const ALL: &[Action] = &[$(Action::$variant,)*];
            pub fn name(self) -> &'static str {
                match self { $(Action::$variant => $name,)* }
            }
        }
    };
}

actions! {
    AddShard "addShard",
    AdvanceClusterTime "advanceClusterTime",
    AllCollectionStats "allCollectionStats",
    Analyze "analyze",
    AnalyzeShardKey "analyzeShardKey",
    AnyAction "anyAction",
    AppendOplogNote "appendOplogNote",
    ApplicationMessage "applicationMessage",
    ApplyOps "applyOps",
    AuditConfigure "auditConfigure",
    AuditLogRotate "auditLogRotate",
    AuthCheck "authCheck",
    AuthSchemaUpgrade "authSchemaUpgrade",
    Authenticate "authenticate",
    BypassDefaultMaxTimeMS "bypassDefaultMaxTimeMS",
    BypassDocumentValidation "bypassDocumentValidation",
    BypassWriteBlockingMode "bypassWriteBlockingMode",
    ChangeCustomData "changeCustomData",
    ChangeOwnCustomData "changeOwnCustomData",
    ChangeOwnPassword "changeOwnPassword",
    ChangePassword "changePassword",
    ChangeStream "changeStream",
    CheckFreeMonitoringStatus "checkFreeMonitoringStatus",
    CheckMetadataConsistency "checkMetadataConsistency",
    CleanupOrphaned "cleanupOrphaned",
    CleanupStructuredEncryptionData "cleanupStructuredEncryptionData",
    ClearJumboFlag "clearJumboFlag",
    CloseAllDatabases "closeAllDatabases",
    CollMod "collMod",
    CollStats "collStats",
    Compact "compact",
    CompactStructuredEncryptionData "compactStructuredEncryptionData",
    ConfigureQueryAnalyzer "configureQueryAnalyzer",
    ConnPoolStats "connPoolStats",
    ConnPoolSync "connPoolSync",
    ConvertToCapped "convertToCapped",
    CpuProfiler "cpuProfiler",
    CreateCollection "createCollection",
    CreateDatabase "createDatabase",
    CreateIndex "createIndex",
    CreateRole "createRole",
    CreateSearchIndexes "createSearchIndexes",
    CreateUser "createUser",
    DbCheck "dbCheck",
    DbHash "dbHash",
    DbStats "dbStats",
    DropAllRolesFromDatabase "dropAllRolesFromDatabase",
    DropAllUsersFromDatabase "dropAllUsersFromDatabase",
    DropCollection "dropCollection",
    DropConnections "dropConnections",
    DropDatabase "dropDatabase",
    DropIndex "dropIndex",
    DropRole "dropRole",
    DropSearchIndex "dropSearchIndex",
    DropUser "dropUser",
    Emptycapped "emptycapped",
    EnableProfiler "enableProfiler",
    EnableSharding "enableSharding",
    ExportCollection "exportCollection",
    Find "find",
    FlushRouterConfig "flushRouterConfig",
    ForceUUID "forceUUID",
    Fsync "fsync",
    FsyncUnlock "fsyncUnlock",
    GetChangeStreamState "getChangeStreamState",
    GetClusterParameter "getClusterParameter",
    GetCmdLineOpts "getCmdLineOpts",
    GetDatabaseVersion "getDatabaseVersion",
    GetDefaultRWConcern "getDefaultRWConcern",
    GetLog "getLog",
    GetParameter "getParameter",
    GetShardMap "getShardMap",
    GetShardVersion "getShardVersion",
    GrantPrivilegesToRole "grantPrivilegesToRole",
    GrantRole "grantRole",
    GrantRolesToRole "grantRolesToRole",
    GrantRolesToUser "grantRolesToUser",
    HostInfo "hostInfo",
    Impersonate "impersonate",
    ImportCollection "importCollection",
    IndexStats "indexStats",
    Inprog "inprog",
    Insert "insert",
    Internal "internal",
    InvalidateUserCache "invalidateUserCache",
    IssueDirectShardOperations "issueDirectShardOperations",
    KillAnyCursor "killAnyCursor",
    KillAnySession "killAnySession",
    KillCursors "killCursors",
    Killop "killop",
    ListCachedAndActiveUsers "listCachedAndActiveUsers",
    ListCollections "listCollections",
    ListCursors "listCursors",
    ListDatabases "listDatabases",
    ListIndexes "listIndexes",
    ListSampledQueries "listSampledQueries",
    ListSearchIndexes "listSearchIndexes",
    ListSessions "listSessions",
    ListShards "listShards",
    LogRotate "logRotate",
    MoveChunk "moveChunk",
    MoveCollection "moveCollection",
    Netstat "netstat",
    OidReset "oidReset",
    OidcListKeys "oidcListKeys",
    OidcRefreshKeys "oidcRefreshKeys",
    OperationMetrics "operationMetrics",
    PlanCacheIndexFilter "planCacheIndexFilter",
    PlanCacheRead "planCacheRead",
    PlanCacheWrite "planCacheWrite",
    QuerySettings "querySettings",
    QueryStatsRead "queryStatsRead",
    QueryStatsReadTransformed "queryStatsReadTransformed",
    ReIndex "reIndex",
    RefineCollectionShardKey "refineCollectionShardKey",
    Remove "remove",
    RemoveShard "removeShard",
    RenameCollection "renameCollection",
    RenameCollectionSameDB "renameCollectionSameDB",
    RepairDatabase "repairDatabase",
    ReplSetConfigure "replSetConfigure",
    ReplSetGetConfig "replSetGetConfig",
    ReplSetGetStatus "replSetGetStatus",
    ReplSetHeartbeat "replSetHeartbeat",
    ReplSetReconfig "replSetReconfig",
    ReplSetResizeOplog "replSetResizeOplog",
    ReplSetStateChange "replSetStateChange",
    ReshardCollection "reshardCollection",
    Resync "resync",
    RevokePrivilegesFromRole "revokePrivilegesFromRole",
    RevokeRole "revokeRole",
    RevokeRolesFromRole "revokeRolesFromRole",
    RevokeRolesFromUser "revokeRolesFromUser",
    RotateCertificates "rotateCertificates",
    RunAsLessPrivilegedUser "runAsLessPrivilegedUser",
    RunTenantMigration "runTenantMigration",
    ServerStatus "serverStatus",
    SetAuthenticationRestriction "setAuthenticationRestriction",
    SetChangeStreamState "setChangeStreamState",
    SetClusterParameter "setClusterParameter",
    SetDefaultRWConcern "setDefaultRWConcern",
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion",
    SetFreeMonitoring "setFreeMonitoring",
    SetParameter "setParameter",
    SetUserWriteBlockMode "setUserWriteBlockMode",
    ShardCollection "shardCollection",
    ShardedDataDistribution "shardedDataDistribution",
    ShardingState "shardingState",
    Shutdown "shutdown",
    SplitChunk "splitChunk",
    SplitVector "splitVector",
    StorageDetails "storageDetails",
    Top "top",
    Touch "touch",
    TrafficRecord "trafficRecord",
    TransitionFromDedicatedConfigServer "transitionFromDedicatedConfigServer",
    TransitionToDedicatedConfigServer "transitionToDedicatedConfigServer",
    Unlock "unlock",
    UnshardCollection "unshardCollection",
    Update "update",
    UpdateRole "updateRole",
    UpdateSearchIndex "updateSearchIndex",
    UpdateUser "updateUser",
    UseTenant "useTenant",
    UseUUID "useUUID",
    Validate "validate",
    ViewRole "viewRole",
    ViewUser "viewUser",
}

impl Action {
    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL.iter().copied().find(|action| action.name() == name)
    }
}

/// A set of actions: one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet([u64; 4]);

impl ActionSet {
    pub const EMPTY: ActionSet = ActionSet([0; 4]);
    pub const fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::EMPTY;
        let mut i = 0;
        while i < actions.len() {
            let bit = actions[i] as usize;
            set.0[bit / 64] |= 1 << (bit % 64);
            i += 1;
        }
        set
    }
    /// What `anyAction` stands for.
    pub fn all() -> ActionSet {
        ActionSet::of(Action::ALL)
    }
    pub const fn or(self, other: ActionSet) -> ActionSet {
        let (a, b) = (self.0, other.0);
        ActionSet([a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]])
    }
    pub const fn without(self, other: ActionSet) -> ActionSet {
        let (a, b) = (self.0, other.0);
        ActionSet([a[0] & !b[0], a[1] & !b[1], a[2] & !b[2], a[3] & !b[3]])
    }
    pub const fn contains(self, action: Action) -> bool {
        self.0[action as usize / 64] & (1 << (action as usize % 64)) != 0
    }
    pub fn is_empty(self) -> bool {
        self == ActionSet::EMPTY
    }
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.contains(*action))
    }
    /// Reads the `actions` of a privilege.
    ///
    /// # Errors
    /// FailedToParse (9) for a name that is none.
    pub fn parse(names: &[Value]) -> Result<ActionSet> {
        let mut set = ActionSet::EMPTY;
        for value in names {
            let Some(name) = value.as_str() else {
                bail!(TYPE_MISMATCH, "actions must be strings, found {}", value.type_name())
            };
            match Action::from_name(name) {
                Some(Action::AnyAction) => set = ActionSet::all(),
                Some(action) => set = set.or(ActionSet::of(&[action])),
                None => bail!(FAILED_TO_PARSE, "Unrecognized action privilege strings: {name}"),
            }
        }
        Ok(set)
    }
    /// The names, sorted; all of them are written `anyAction`.
    pub fn to_value(self) -> Value {
        if self == ActionSet::all() {
            return Value::Array(vec![Value::from("anyAction")]);
        }
        Value::Array(self.iter().map(|action| Value::from(action.name())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again_and_all_fit_into_a_set() {
        assert!(Action::ALL.len() <= 256);
        for action in Action::ALL {
            assert_eq!(Action::from_name(action.name()), Some(*action));
        }
        assert_eq!(ActionSet::all().iter().count(), Action::ALL.len());
    }

    #[test]
    fn names_are_read_and_written() {
        let set = ActionSet::parse(&[Value::from("insert"), Value::from("find")]).unwrap();
        assert_eq!(set.to_value(), document::array!["find", "insert"]);
        assert_eq!(ActionSet::parse(&[Value::from("nosuch")]).unwrap_err().code, 9);
        let any = ActionSet::parse(&[Value::from("anyAction")]).unwrap();
        assert!(any.contains(Action::Internal));
        assert_eq!(any.to_value(), document::array!["anyAction"]);
    }
}
