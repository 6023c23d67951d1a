//! `ErrorCodes`, `ErrorCodeStrings` and the questions `ErrorCodes.isNetworkError(code)` and their like, for libraries
//! that bring no table of their own.

use document::error as categories;
use rquickjs::{Ctx, Function, Object};

/// Defines the globals. The table of the servers comes first; the names below are what tests may ask for besides.
pub fn define(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let globals = ctx.globals();
    let (by_name, by_code) = (Object::new(ctx.clone())?, Object::new(ctx.clone())?);
    for (code, name) in NEVER_ANSWERED.iter().copied().chain(document::error::table()) {
        by_name.set(name, code)?;
        by_code.set(code.to_string(), name)?;
    }
    let is = Function::new(ctx.clone(), |code: i32, category: usize| {
        CATEGORIES.get(category).is_some_and(|category| category.holds(code))
    })?;
    let define: Function = ctx.eval(
        "(function(codes, is, name, category) { \
           Object.defineProperty(codes, name, {value: function(e) { \
             return is(typeof e === 'string' ? codes[e] ?? 0 : Number(e) || 0, category); }}); })",
    )?;
    for (i, category) in CATEGORIES.iter().enumerate() {
        define.call::<_, ()>((by_name.clone(), is.clone(), category.name, i))?;
    }
    globals.set("ErrorCodes", by_name)?;
    globals.set("ErrorCodeStrings", by_code)
}

/// A question about a code: those of the servers' category, and others that our servers never answer with.
struct Category {
    name: &'static str,
    bits: u8,
    others: &'static [i32],
}

impl Category {
    fn holds(&self, code: i32) -> bool {
        categories::categories(code) & self.bits != 0 || self.others.contains(&code)
    }
}

const CATEGORIES: &[Category] = &[
    Category { name: "isRetriableError", bits: categories::RETRIABLE, others: &[262, 317] },
    Category { name: "isNetworkError", bits: categories::NETWORK, others: &[9001] },
    Category { name: "isInterruption", bits: categories::INTERRUPTION, others: &[11600, 11601, 11602] },
    Category { name: "isNotPrimaryError", bits: categories::NOT_PRIMARY, others: &[] },
    Category { name: "isSnapshotError", bits: categories::SNAPSHOT, others: &[] },
    Category { name: "isStaleShardVersionError", bits: categories::STALE_SHARD_VERSION, others: &[] },
    Category { name: "isStaleDbVersionError", bits: categories::STALE_DB_VERSION, others: &[] },
    Category { name: "isShutdownError", bits: 0, others: &[91, 11600] },
    Category { name: "isExceededTimeLimitError", bits: 0, others: &[50, 89, 202, 262, 290] },
    Category { name: "isWriteConcernError", bits: 0, others: &[64, 79, 100] },
    Category { name: "isCursorInvalidatedError", bits: 0, others: &[43, 136, 175, 237] },
    Category { name: "isConnectionFatalMessageParseError", bits: 0, others: &[17, 223] },
    Category { name: "isCancellationError", bits: 0, others: &[90] },
    Category { name: "isTenantMigrationError", bits: 0, others: &[320, 321, 325] },
];

/// Documented codes our servers have no use for.
const NEVER_ANSWERED: &[(i32, &str)] = &[
    (19, "CannotReuseObject"),
    (25, "RemoteValidationError"),
    (32, "RolesNotRelated"),
    (33, "PrivilegeNotFound"),
    (35, "UserModificationFailed"),
    (36, "RemoteChangeDetected"),
    (37, "FileRenameFailed"),
    (38, "FileNotOpen"),
    (39, "FileStreamFailed"),
    (41, "FileAlreadyOpen"),
    (42, "LogWriteFailed"),
    (45, "UserDataInconsistent"),
    (47, "NoMatchingDocument"),
    (51, "ManualInterventionRequired"),
    (58, "RoleModificationFailed"),
    (62, "OplogOperationUnsupported"),
    (71, "ReplicaSetNotFound"),
    (75, "WriteConcernLegacyOK"),
    (80, "RoleDataInconsistent"),
    (81, "NoMatchParseContext"),
    (83, "RemoteResultsUnavailable"),
    (92, "SecondaryAheadOfPrimary"),
    (95, "NotSecondary"),
    (97, "NoProjectionFound"),
    (98, "DBPathInUse"),
    (101, "OutdatedClient"),
    (102, "IncompatibleAuditMetadata"),
    (104, "NodeNotElectable"),
    (106, "DistributedClockSkewed"),
    (108, "InconsistentReplicaSetNames"),
    (110, "CannotInitializeNodeWithData"),
    (111, "NotExactValueField"),
    (113, "InitialSyncFailure"),
    (114, "InitialSyncOplogSourceMissing"),
    (116, "DocTooLargeForCapped"),
    (119, "InvalidSyncSource"),
    (120, "OplogStartMissing"),
    (123, "NotAReplicaSet"),
    (124, "IncompatibleElectionProtocol"),
    (126, "RPCProtocolNegotiationFailed"),
    (127, "UnrecoverableRollbackError"),
    (128, "LockNotFound"),
    (129, "LockStateChangeFailed"),
    (130, "SymbolNotFound"),
    (138, "RemoteOplogStale"),
    (139, "JSInterpreterFailure"),
    (140, "InvalidSSLConfiguration"),
    (141, "SSLHandshakeFailed"),
    (142, "JSUncatchableError"),
    (143, "CursorInUse"),
    (144, "IncompatibleCatalogManager"),
    (145, "PooledConnectionsDropped"),
    (147, "ZLibError"),
    (152, "OplogOutOfOrder"),
    (155, "CannotApplyOplogWhilePrimary"),
    (157, "CanRepairToDowngrade"),
    (158, "MustUpgrade"),
    (159, "DurationOverflow"),
    (160, "MaxStalenessOutOfRange"),
    (161, "IncompatibleCollationVersion"),
    (162, "CollectionIsEmpty"),
    (173, "TransportSessionNotFound"),
    (174, "TransportSessionUnknown"),
    (176, "FileOpenFailed"),
    (179, "WindowsPdhError"),
    (180, "BadPerfCounterPath"),
    (183, "ClientMetadataMissingField"),
    (184, "ClientMetadataAppNameTooLarge"),
    (185, "ClientMetadataDocumentTooLarge"),
    (186, "ClientMetadataCannotBeMutated"),
    (187, "LinearizableReadConcernError"),
    (190, "MasterSlaveConnectionFailure"),
    (192, "FailPointEnabled"),
    (195, "ViewPipelineMaxSizeExceeded"),
    (199, "ReplicaSetMonitorRemoved"),
    (205, "ClusterTimeFailsRateLimiter"),
    (218, "UpdateOperationFailed"),
    (219, "FTDCPathNotSet"),
    (220, "FTDCPathAlreadySet"),
    (221, "IndexModified"),
    (222, "CloseChangeStream"),
    (223, "IllegalOpMsgFlag"),
    (224, "QueryFeatureNotAllowed"),
    (226, "AtomicityFailure"),
    (229, "MustDowngrade"),
    (230, "DNSHostNotFound"),
    (231, "DNSProtocolError"),
    (232, "MaxSubPipelineDepthExceeded"),
    (233, "TooManyDocumentSequences"),
    (236, "ForTestingErrorExtraInfo"),
    (240, "DNSRecordTypeMismatch"),
    (245, "BrokenPromise"),
    (247, "ProducerConsumerQueueBatchTooLarge"),
    (248, "ProducerConsumerQueueEndClosed"),
    (259, "KeyedExecutorRetry"),
    (264, "TooManyFilesOpen"),
    (266, "FailPointSetFailed"),
    (268, "CannotBackup"),
    (269, "DataModifiedByRepair"),
    (270, "RepairedReplicaSetNode"),
    (271, "JSInterpreterFailureWithStack"),
    (273, "ProducerConsumerQueueProducerQueueDepthExceeded"),
    (274, "ProducerConsumerQueueConsumed"),
    (275, "ExchangePassthrough"),
    (277, "AlarmAlreadyFulfilled"),
    (278, "UnsatisfiableCommitQuorum"),
    (279, "ClientDisconnect"),
    (281, "TransactionCoordinatorSteppingDown"),
    (282, "TransactionCoordinatorReachedAbortDecision"),
    (284, "ForTestingErrorExtraInfoWithExtraInfoInNamespace"),
    (287, "TransactionCoordinatorDeadlineTaskCanceled"),
    (288, "ChecksumMismatch"),
    (289, "WaitForMajorityServiceEarlierOpTimeAvailable"),
    (293, "InvalidSeedList"),
    (294, "InvalidTopologyType"),
    (295, "InvalidHeartBeatFrequency"),
    (296, "TopologySetNameRequired"),
    (297, "HierarchicalAcquisitionLevelViolation"),
    (298, "InvalidServerType"),
    (299, "OCSPCertificateStatusRevoked"),
    (301, "DataCorruptionDetected"),
    (302, "OCSPCertificateStatusUnknown"),
    (303, "SplitHorizonChange"),
    (304, "ShardInvalidatedForTargeting"),
    (307, "RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist"),
    (308, "CurrentConfigNotCommittedYet"),
    (309, "ExhaustCommandFinished"),
    (310, "PeriodicJobIsStopped"),
    (311, "TransactionCoordinatorCanceled"),
    (312, "OperationIsKilledAndDelisted"),
    (314, "ObjectIsBusy"),
    (315, "TooStaleToSyncFromSource"),
    (316, "QueryTrialRunCompleted"),
    (317, "ConnectionPoolExpired"),
    (318, "ForTestingOptionalErrorExtraInfo"),
    (320, "TenantMigrationConflict"),
    (321, "TenantMigrationCommitted"),
    (325, "TenantMigrationAborted"),
    (326, "OplogQueryMinTsMissing"),
    (327, "NoSuchTenantMigration"),
    (328, "TenantMigrationAccessBlockerShuttingDown"),
    (329, "TenantMigrationInProgress"),
    (330, "SkipCommandExecution"),
    (331, "FailedToRunWithReplyBuilder"),
    (332, "CannotDowngrade"),
    (333, "ServiceExecutorInShutdown"),
    (334, "MechanismUnavailable"),
    (335, "TenantMigrationForgotten"),
    (342, "AuthenticationAbandoned"),
    (354, "LoadBalancerSupportMismatch"),
    (355, "InterruptedDueToStorageChange"),
    (365, "TemporarilyUnavailable"),
    (391, "ReauthenticationRequired"),
    (12586, "BackgroundOperationInProgressForDatabase"),
    (13113, "MergeStageNoMatchingDocument"),
];
