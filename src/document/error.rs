//! The error a client sees: the real server's code, codeName and wording, with categories asked for by logic.
//!
//! One table holds every code with its name and categories. Code asks "is this a stale version?" and never lists
//! codes itself. Codes without a name in the table are shown as `Location<code>`, as the real server does.

use crate::{Document, Value};
use std::fmt;

/// Bytes of messages that one reply shows.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed command, statement or internal step, as it will be shown to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub code: i32,
    pub message: String,
    /// Members inlined at the top level of an error reply (and as `errInfo` in a write error), e.g. StaleConfig's.
    pub info: Option<Box<Document>>,
    /// `errorLabels` of the reply.
    pub labels: Vec<&'static str>,
    pub phase: Phase,
}

/// When it was that a read or a write failed: commands word what fails while they run as the real server does
/// ([`Error::while_running`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Before it ran, or nothing is known of it.
    #[default]
    Before,
    Running,
    /// By an expression that no document has a part in, which the real server evaluates before it runs.
    Constant,
}

impl Error {
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), info: None, labels: Vec::new(), phase: Phase::Before }
    }
    pub fn with_info(mut self, info: Document) -> Error {
        self.info = Some(Box::new(info));
        self
    }
    pub fn with_label(mut self, label: &'static str) -> Error {
        if !self.labels.contains(&label) {
            self.labels.push(label);
        }
        self
    }
    /// Puts `context` and the separator the real server uses (` :: caused by :: `) before the message.
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.message = format!("{context} :: caused by :: {}", self.message);
        self
    }
    /// Notes when it happened, if that is not noted yet.
    pub fn at(mut self, phase: Phase) -> Error {
        if self.phase == Phase::Before {
            self.phase = phase;
        }
        self
    }
    /// The error as a command shows it: what happened while it ran has the context `running`, what is wrong with a constant
    /// expression the context `constant`, if there is one.
    pub fn while_running(mut self, running: impl FnOnce() -> String, constant: Option<&str>) -> Error {
        match std::mem::take(&mut self.phase) {
            Phase::Before => self,
            Phase::Running => self.context(running()),
            Phase::Constant => match constant {
                Some(constant) => self.context(constant),
                None => self,
            },
        }
    }
    pub fn code_name(&self) -> String {
        code_name(self.code)
    }
    pub fn is(&self, category: u8) -> bool {
        categories(self.code) & category != 0
    }
    /// The message, or as much of it as a reply shows: what a client sent stands in many messages, and may be long.
    pub fn shown_message(&self) -> &str {
        &self.message[..self.message.floor_char_boundary(MESSAGE_BYTES_MAX)]
    }
    /// The reply `{ok: 0, errmsg, code, codeName, ...info, errorLabels}`.
    pub fn to_reply(&self) -> Document {
        let mut reply = Document::new();
        reply.push("ok", 0.0);
        reply.push("errmsg", self.shown_message());
        reply.push("code", self.code);
        reply.push("codeName", self.code_name());
        if let Some(info) = &self.info {
            for (name, value) in info.iter() {
                reply.push(name, value.clone());
            }
        }
        if !self.labels.is_empty() {
            reply.push("errorLabels", Value::Array(self.labels.iter().map(|l| Value::from(*l)).collect()));
        }
        reply
    }
    /// Reads an error reply of another node back; `None` when `ok` is 1.
    pub fn from_reply(reply: &Document) -> Option<Error> {
        if reply.get("ok").is_some_and(|v| v.truthy()) {
            return None;
        }
        let code = reply.get("code").and_then(Value::as_i64).unwrap_or(codes::UNKNOWN_ERROR as i64);
        let message = reply.get("errmsg").and_then(Value::as_str).unwrap_or("").to_string();
        let mut error = Error::new(code as i32, message);
        let mut info = Document::new();
        for (name, value) in reply.iter() {
            let known = ["ok", "errmsg", "code", "codeName", "errorLabels", "operationTime"];
            if !known.contains(&name) && !name.starts_with('$') {
                info.push(name, value.clone());
            }
        }
        if !info.is_empty() {
            error.info = Some(Box::new(info));
        }
        if let Some(Value::Array(labels)) = reply.get("errorLabels") {
            for known in KNOWN_LABELS {
                if labels.iter().any(|l| l.as_str() == Some(known)) {
                    error.labels.push(known);
                }
            }
        }
        Some(error)
    }
}

const KNOWN_LABELS: [&str; 6] = [
    "TransientTransactionError",
    "UnknownTransactionCommitResult",
    "RetryableWriteError",
    "NonResumableChangeStreamError",
    "ResumableChangeStreamError",
    "NoWritesPerformed",
];

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code_name(), self.message)
    }
}
impl std::error::Error for Error {}

/// Categories, as bits.
pub const RETRIABLE: u8 = 1;
/// A stale shard version: refresh the routing table of the namespace and retry.
pub const STALE_SHARD_VERSION: u8 = 2;
/// A stale database version: refresh the database entry and retry.
pub const STALE_DB_VERSION: u8 = 4;
pub const SNAPSHOT: u8 = 8;
pub const NOT_PRIMARY: u8 = 16;
pub const NETWORK: u8 = 32;
pub const INTERRUPTION: u8 = 64;

macro_rules! codes {
    ($($konst:ident $code:literal $name:literal $cats:expr;)*) => {
        /// Error codes by the real server's name.
        pub mod codes { $(pub const $konst: i32 = $code;)* }
        const TABLE: &[(i32, &str, u8)] = &[$(($code, $name, $cats)),*];
    };
}

codes! {
    OK 0 "OK" 0;
    INTERNAL_ERROR 1 "InternalError" 0;
    BAD_VALUE 2 "BadValue" 0;
    NO_SUCH_KEY 4 "NoSuchKey" 0;
    GRAPH_CONTAINS_CYCLE 5 "GraphContainsCycle" 0;
    HOST_UNREACHABLE 6 "HostUnreachable" RETRIABLE | NETWORK;
    HOST_NOT_FOUND 7 "HostNotFound" RETRIABLE | NETWORK;
    UNKNOWN_ERROR 8 "UnknownError" 0;
    FAILED_TO_PARSE 9 "FailedToParse" 0;
    CANNOT_MUTATE_OBJECT 10 "CannotMutateObject" 0;
    USER_NOT_FOUND 11 "UserNotFound" 0;
    UNSUPPORTED_FORMAT 12 "UnsupportedFormat" 0;
    UNAUTHORIZED 13 "Unauthorized" 0;
    TYPE_MISMATCH 14 "TypeMismatch" 0;
    OVERFLOW 15 "Overflow" 0;
    INVALID_LENGTH 16 "InvalidLength" 0;
    PROTOCOL_ERROR 17 "ProtocolError" 0;
    AUTHENTICATION_FAILED 18 "AuthenticationFailed" 0;
    ILLEGAL_OPERATION 20 "IllegalOperation" 0;
    EMPTY_ARRAY_OPERATION 21 "EmptyArrayOperation" 0;
    INVALID_BSON 22 "InvalidBSON" 0;
    ALREADY_INITIALIZED 23 "AlreadyInitialized" 0;
    LOCK_TIMEOUT 24 "LockTimeout" 0;
    NAMESPACE_NOT_FOUND 26 "NamespaceNotFound" 0;
    INDEX_NOT_FOUND 27 "IndexNotFound" 0;
    PATH_NOT_VIABLE 28 "PathNotViable" 0;
    NON_EXISTENT_PATH 29 "NonExistentPath" 0;
    INVALID_PATH 30 "InvalidPath" 0;
    ROLE_NOT_FOUND 31 "RoleNotFound" 0;
    CANNOT_BACKFILL_ARRAY 34 "CannotBackfillArray" 0;
    CONFLICTING_UPDATE_OPERATORS 40 "ConflictingUpdateOperators" 0;
    CURSOR_NOT_FOUND 43 "CursorNotFound" 0;
    LOCK_BUSY 46 "LockBusy" 0;
    NO_MATCHING_DOCUMENT 47 "NoMatchingDocument" 0;
    NAMESPACE_EXISTS 48 "NamespaceExists" 0;
    INVALID_ROLE_MODIFICATION 49 "InvalidRoleModification" 0;
    MAX_TIME_MS_EXPIRED 50 "MaxTimeMSExpired" INTERRUPTION;
    DOLLAR_PREFIXED_FIELD_NAME 52 "DollarPrefixedFieldName" 0;
    INVALID_ID_FIELD 53 "InvalidIdField" 0;
    NOT_SINGLE_VALUE_FIELD 54 "NotSingleValueField" 0;
    INVALID_DBREF 55 "InvalidDBRef" 0;
    EMPTY_FIELD_NAME 56 "EmptyFieldName" 0;
    DOTTED_FIELD_NAME 57 "DottedFieldName" 0;
    COMMAND_NOT_FOUND 59 "CommandNotFound" 0;
    SHARD_KEY_NOT_FOUND 61 "ShardKeyNotFound" 0;
    STALE_SHARD_VERSION 63 "StaleShardVersion" STALE_SHARD_VERSION;
    WRITE_CONCERN_FAILED 64 "WriteConcernFailed" 0;
    MULTIPLE_ERRORS_OCCURRED 65 "MultipleErrorsOccurred" 0;
    IMMUTABLE_FIELD 66 "ImmutableField" 0;
    CANNOT_CREATE_INDEX 67 "CannotCreateIndex" 0;
    INDEX_ALREADY_EXISTS 68 "IndexAlreadyExists" 0;
    AUTH_SCHEMA_INCOMPATIBLE 69 "AuthSchemaIncompatible" 0;
    SHARD_NOT_FOUND 70 "ShardNotFound" 0;
    INVALID_OPTIONS 72 "InvalidOptions" 0;
    INVALID_NAMESPACE 73 "InvalidNamespace" 0;
    NODE_NOT_FOUND 74 "NodeNotFound" 0;
    NO_REPLICATION_ENABLED 76 "NoReplicationEnabled" 0;
    OPERATION_INCOMPLETE 77 "OperationIncomplete" 0;
    COMMAND_RESULT_SCHEMA_VIOLATION 78 "CommandResultSchemaViolation" 0;
    UNKNOWN_REPL_WRITE_CONCERN 79 "UnknownReplWriteConcern" 0;
    NO_PROGRESS_MADE 82 "NoProgressMade" 0;
    INDEX_OPTIONS_CONFLICT 85 "IndexOptionsConflict" 0;
    INDEX_KEY_SPECS_CONFLICT 86 "IndexKeySpecsConflict" 0;
    CANNOT_SPLIT 87 "CannotSplit" 0;
    NETWORK_TIMEOUT 89 "NetworkTimeout" RETRIABLE | NETWORK;
    CALLBACK_CANCELED 90 "CallbackCanceled" 0;
    SHUTDOWN_IN_PROGRESS 91 "ShutdownInProgress" RETRIABLE | NOT_PRIMARY;
    INVALID_REPLICA_SET_CONFIG 93 "InvalidReplicaSetConfig" 0;
    NOT_YET_INITIALIZED 94 "NotYetInitialized" 0;
    NOT_SECONDARY 95 "NotSecondary" 0;
    OPERATION_FAILED 96 "OperationFailed" 0;
    UNSATISFIABLE_WRITE_CONCERN 100 "UnsatisfiableWriteConcern" 0;
    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE 103 "NewReplicaSetConfigurationIncompatible" 0;
    NODE_NOT_ELECTABLE 104 "NodeNotElectable" 0;
    INCOMPATIBLE_SHARDING_METADATA 105 "IncompatibleShardingMetadata" 0;
    LOCK_FAILED 107 "LockFailed" 0;
    INCONSISTENT_REPLICA_SET_NAMES 108 "InconsistentReplicaSetNames" 0;
    CONFIGURATION_IN_PROGRESS 109 "ConfigurationInProgress" 0;
    WRITE_CONFLICT 112 "WriteConflict" 0;
    INITIAL_SYNC_FAILURE 113 "InitialSyncFailure" 0;
    INITIAL_SYNC_OPLOG_SOURCE_MISSING 114 "InitialSyncOplogSourceMissing" 0;
    COMMAND_NOT_SUPPORTED 115 "CommandNotSupported" 0;
    CONFLICTING_OPERATION_IN_PROGRESS 117 "ConflictingOperationInProgress" 0;
    NAMESPACE_NOT_SHARDED 118 "NamespaceNotSharded" 0;
    INVALID_SYNC_SOURCE 119 "InvalidSyncSource" 0;
    OPLOG_START_MISSING 120 "OplogStartMissing" 0;
    DOCUMENT_VALIDATION_FAILURE 121 "DocumentValidationFailure" 0;
    NOT_A_REPLICA_SET 123 "NotAReplicaSet" 0;
    COMMAND_FAILED 125 "CommandFailed" 0;
    UNRECOVERABLE_ROLLBACK_ERROR 127 "UnrecoverableRollbackError" 0;
    FAILED_TO_SATISFY_READ_PREFERENCE 133 "FailedToSatisfyReadPreference" 0;
    READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET 134 "ReadConcernMajorityNotAvailableYet" RETRIABLE;
    STALE_TERM 135 "StaleTerm" 0;
    CAPPED_POSITION_LOST 136 "CappedPositionLost" 0;
    INCOMPATIBLE_SHARDING_CONFIG_VERSION 137 "IncompatibleShardingConfigVersion" 0;
    JS_INTERPRETER_FAILURE 139 "JSInterpreterFailure" 0;
    OPLOG_OUT_OF_ORDER 152 "OplogOutOfOrder" 0;
    QUERY_PLAN_KILLED 175 "QueryPlanKilled" 0;
    INVALID_SSL_CONFIGURATION 140 "InvalidSSLConfiguration" 0;
    EXCEEDED_MEMORY_LIMIT 146 "ExceededMemoryLimit" 0;
    READ_CONCERN_MAJORITY_NOT_ENABLED 148 "ReadConcernMajorityNotEnabled" 0;
    NO_CONFIG_PRIMARY 149 "NoConfigPrimary" 0;
    STALE_EPOCH 150 "StaleEpoch" STALE_SHARD_VERSION;
    OPERATION_CANNOT_BE_BATCHED 151 "OperationCannotBeBatched" 0;
    CHUNK_TOO_BIG 153 "ChunkTooBig" 0;
    INCONSISTENT_SHARD_IDENTITY 154 "InconsistentShardIdentity" 0;
    CURRENT_CONFIG_NOT_COMMITTED_YET 308 "CurrentConfigNotCommittedYet" 0;
    DURATION_OVERFLOW 159 "DurationOverflow" 0;
    UNSUPPORTED_OP_QUERY_COMMAND 352 "UnsupportedOpQueryCommand" 0;
    LOAD_BALANCER_SUPPORT_MISMATCH 354 "LoadBalancerSupportMismatch" 0;
    VIEW_DEPTH_LIMIT_EXCEEDED 165 "ViewDepthLimitExceeded" 0;
    COMMAND_NOT_SUPPORTED_ON_VIEW 166 "CommandNotSupportedOnView" 0;
    OPTION_NOT_SUPPORTED_ON_VIEW 167 "OptionNotSupportedOnView" 0;
    INVALID_PIPELINE_OPERATOR 168 "InvalidPipelineOperator" 0;
    COMMAND_ON_SHARDED_VIEW_NOT_SUPPORTED_ON_MONGOD 169 "CommandOnShardedViewNotSupportedOnMongod" 0;
    TOO_MANY_MATCHING_DOCUMENTS 170 "TooManyMatchingDocuments" 0;
    CANNOT_INDEX_PARALLEL_ARRAYS 171 "CannotIndexParallelArrays" 0;
    TRANSPORT_SESSION_CLOSED 172 "TransportSessionClosed" 0;
    INVALID_RESUME_TOKEN 260 "InvalidResumeToken" 0;
    MAX_STALENESS_OUT_OF_RANGE 160 "MaxStalenessOutOfRange" 0;
    INCOMPATIBLE_COLLATION_VERSION 161 "IncompatibleCollationVersion" 0;
    ZONE_STILL_IN_USE 163 "ZoneStillInUse" 0;
    INITIAL_SYNC_ACTIVE 164 "InitialSyncActive" 0;
    ZONE_NOT_FOUND 177 "ZoneNotFound" 0;
    RANGE_OVERLAP_CONFLICT 178 "RangeOverlapConflict" 0;
    LOG_WRITE_FAILED 180 "LogWriteFailed" 0;
    AMBIGUOUS_INDEX_KEY_PATTERN 181 "AmbiguousIndexKeyPattern" 0;
    INVALID_VIEW_DEFINITION 182 "InvalidViewDefinition" 0;
    CLIENT_METADATA_MISSING_FIELD 183 "ClientMetadataMissingField" 0;
    CLIENT_METADATA_APP_NAME_TOO_LARGE 184 "ClientMetadataAppNameTooLarge" 0;
    CLIENT_METADATA_DOCUMENT_TOO_LARGE 185 "ClientMetadataDocumentTooLarge" 0;
    CLIENT_METADATA_CANNOT_BE_MUTATED 186 "ClientMetadataCannotBeMutated" 0;
    INVALID_INDEX_SPECIFICATION_OPTION 197 "InvalidIndexSpecificationOption" 0;
    INCOMPATIBLE_SERVER_VERSION 188 "IncompatibleServerVersion" 0;
    PRIMARY_STEPPED_DOWN 189 "PrimarySteppedDown" RETRIABLE | NOT_PRIMARY;
    NO_SHARDING_ENABLED 193 "NoShardingEnabled" 0;
    BALANCER_INTERRUPTED 194 "BalancerInterrupted" 0;
    VIEW_PIPELINE_MAX_SIZE_EXCEEDED 195 "ViewPipelineMaxSizeExceeded" 0;
    CHUNK_RANGE_CLEANUP_PENDING 200 "ChunkRangeCleanupPending" 0;
    CANNOT_BUILD_INDEX_KEYS 201 "CannotBuildIndexKeys" 0;
    NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT 202 "NetworkInterfaceExceededTimeLimit" NETWORK;
    SHARDING_STATE_NOT_INITIALIZED 203 "ShardingStateNotInitialized" 0;
    TIME_PROOF_MISMATCH 204 "TimeProofMismatch" 0;
    NO_SUCH_SESSION 206 "NoSuchSession" 0;
    INVALID_UUID 207 "InvalidUUID" 0;
    TOO_MANY_LOCKS 208 "TooManyLocks" 0;
    CANNOT_VERIFY_AND_SIGN_LOGICAL_TIME 210 "CannotVerifyAndSignLogicalTime" 0;
    CLUSTER_TIME_FAILS_RATE_LIMITER 205 "ClusterTimeFailsRateLimiter" 0;
    STALE_CLUSTER_TIME 209 "StaleClusterTime" 0;
    KEY_NOT_FOUND 211 "KeyNotFound" 0;
    INCOMPATIBLE_ROLLBACK_ALGORITHM 212 "IncompatibleRollbackAlgorithm" 0;
    DUPLICATE_SESSION 213 "DuplicateSession" 0;
    AUTHENTICATION_RESTRICTION_UNMET 214 "AuthenticationRestrictionUnmet" 0;
    DATABASE_DROP_PENDING 215 "DatabaseDropPending" 0;
    ELECTION_IN_PROGRESS 216 "ElectionInProgress" 0;
    INCOMPLETE_TRANSACTION_HISTORY 217 "IncompleteTransactionHistory" 0;
    QUERY_FEATURE_NOT_ALLOWED 224 "QueryFeatureNotAllowed" 0;
    TRANSACTION_TOO_OLD 225 "TransactionTooOld" 0;
    CANNOT_IMPLICITLY_CREATE_COLLECTION 227 "CannotImplicitlyCreateCollection" 0;
    SESSION_TRANSFER_INCOMPLETE 228 "SessionTransferIncomplete" 0;
    RETRY_CHANGE_STREAM 234 "RetryChangeStream" 0;
    CANNOT_GROW_DOCUMENT_IN_CAPPED_NAMESPACE 10003 "CannotGrowDocumentInCappedNamespace" 0;
    INTERNAL_ERROR_NOT_SUPPORTED 235 "InternalErrorNotSupported" 0;
    FAIL_POINT_ENABLED 192 "FailPointEnabled" 0;
    CURSOR_KILLED 237 "CursorKilled" INTERRUPTION;
    NOT_IMPLEMENTED 238 "NotImplemented" 0;
    SNAPSHOT_TOO_OLD 239 "SnapshotTooOld" SNAPSHOT;
    CONVERSION_FAILURE 241 "ConversionFailure" 0;
    CANNOT_CREATE_COLLECTION 242 "CannotCreateCollection" 0;
    INCOMPATIBLE_WITH_UPGRADED_SERVER 243 "IncompatibleWithUpgradedServer" 0;
    BSON_OBJECT_TOO_LARGE 10334 "BSONObjectTooLarge" 0;
    SNAPSHOT_UNAVAILABLE 246 "SnapshotUnavailable" SNAPSHOT;
    STALE_CHUNK_HISTORY 250 "StaleChunkHistory" SNAPSHOT;
    STALE_DB_VERSION 249 "StaleDbVersion" STALE_DB_VERSION;
    NO_SUCH_TRANSACTION 251 "NoSuchTransaction" 0;
    REENTRANCY_NOT_ALLOWED 252 "ReentrancyNotAllowed" 0;
    TRANSACTION_COMMITTED 256 "TransactionCommitted" 0;
    TRANSACTION_TOO_LARGE 257 "TransactionTooLarge" 0;
    UNKNOWN_FEATURE_COMPATIBILITY_VERSION 258 "UnknownFeatureCompatibilityVersion" 0;
    EXCEEDED_TIME_LIMIT 262 "ExceededTimeLimit" RETRIABLE;
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION 263 "OperationNotSupportedInTransaction" 0;
    TOO_MANY_LOGICAL_SESSIONS 261 "TooManyLogicalSessions" 0;
    ORPHANED_RANGE_CLEAN_UP_FAILED 265 "OrphanedRangeCleanUpFailed" 0;
    FAIL_POINT_SET_FAILED 266 "FailPointSetFailed" 0;
    QUERY_REJECTED_BY_SETTINGS 411 "QueryRejectedBySettings" 0;
    PREPARED_TRANSACTION_IN_PROGRESS 267 "PreparedTransactionInProgress" 0;
    MIGRATION_CONFLICT 272 "MigrationConflict" SNAPSHOT;
    WOULD_CHANGE_OWNING_SHARD 283 "WouldChangeOwningShard" 0;
    CLIENT_DISCONNECT 279 "ClientDisconnect" INTERRUPTION;
    CHANGE_STREAM_FATAL_ERROR 280 "ChangeStreamFatalError" 0;
    INDEX_BUILD_ABORTED 276 "IndexBuildAborted" 0;
    UNSATISFIABLE_COMMIT_QUORUM 278 "UnsatisfiableCommitQuorum" 0;
    INDEX_BUILD_ALREADY_IN_PROGRESS 285 "IndexBuildAlreadyInProgress" 0;
    CHANGE_STREAM_HISTORY_LOST 286 "ChangeStreamHistoryLost" 0;
    TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS 290 "TransactionExceededLifetimeLimitSeconds" 0;
    NO_QUERY_EXECUTION_PLANS 291 "NoQueryExecutionPlans" 0;
    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED 292 "QueryExceededMemoryLimitNoDiskUseAllowed" 0;
    RANGE_DELETION_ABANDONED_BECAUSE_COLLECTION_WITH_UUID_DOES_NOT_EXIST 300 "RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist" 0;
    SPLIT_HORIZON_CHANGE 303 "SplitHorizonChange" 0;
    RESUMABLE_RANGE_DELETER_DISABLED 313 "ResumableRangeDeleterDisabled" 0;
    CANNOT_CONVERT_INDEX_TO_UNIQUE 359 "CannotConvertIndexToUnique" 0;
    API_VERSION_ERROR 322 "APIVersionError" 0;
    API_STRICT_ERROR 323 "APIStrictError" 0;
    API_DEPRECATION_ERROR 324 "APIDeprecationError" 0;
    MOVE_PRIMARY_IN_PROGRESS 319 "MovePrimaryInProgress" 0;
    RESHARD_COLLECTION_IN_PROGRESS 338 "ReshardCollectionInProgress" 0;
    NO_SUCH_RESHARD_COLLECTION 339 "NoSuchReshardCollection" 0;
    RESHARD_COLLECTION_COMMITTED 340 "ReshardCollectionCommitted" 0;
    RESHARD_COLLECTION_ABORTED 341 "ReshardCollectionAborted" 0;
    RESHARDING_CRITICAL_SECTION_TIMEOUT 342 "ReshardingCriticalSectionTimeout" 0;
    SHARD_CANNOT_REFRESH_DUE_TO_LOCKS_HELD 343 "ShardCannotRefreshDueToLocksHeld" 0;
    API_MISMATCH_ERROR 347 "APIMismatchError" 0;
    KEY_PATTERN_SHORTER_THAN_BOUND 349 "KeyPatternShorterThanBound" 0;
    PLACEMENT_VERSION_REFRESH_CANCELED 360 "PlacementVersionRefreshCanceled" 0;
    COLLECTION_UUID_MISMATCH 361 "CollectionUUIDMismatch" 0;
    CANNOT_DROP_SHARD_KEY_INDEX 370 "CannotDropShardKeyIndex" 0;
    USER_WRITES_BLOCKED 371 "UserWritesBlocked" 0;
    RETRYABLE_TRANSACTION_IN_PROGRESS 363 "RetryableTransactionInProgress" 0;
    STREAM_TERMINATED 398 "StreamTerminated" 0;
    TRANSACTION_API_MUST_RETRY_TRANSACTION 402 "TransactionAPIMustRetryTransaction" RETRIABLE;
    ADD_OR_REMOVE_SHARD_IN_PROGRESS 414 "AddOrRemoveShardInProgress" 0;
    CHUNK_METADATA_INCONSISTENCY 431 "ChunkMetadataInconsistency" 0;
    SOCKET_EXCEPTION 9001 "SocketException" RETRIABLE | NETWORK;
    NOT_WRITABLE_PRIMARY 10107 "NotWritablePrimary" RETRIABLE | NOT_PRIMARY;
    DUPLICATE_KEY 11000 "DuplicateKey" 0;
    INTERRUPTED_AT_SHUTDOWN 11600 "InterruptedAtShutdown" RETRIABLE | NOT_PRIMARY | INTERRUPTION;
    INTERRUPTED 11601 "Interrupted" INTERRUPTION;
    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE 11602 "InterruptedDueToReplStateChange" RETRIABLE | NOT_PRIMARY | INTERRUPTION;
    BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE 12587 "BackgroundOperationInProgressForNamespace" 0;
    DATABASE_DIFFER_CASE 13297 "DatabaseDifferCase" 0;
    STALE_CONFIG 13388 "StaleConfig" STALE_SHARD_VERSION;
    NOT_PRIMARY_NO_SECONDARY_OK 13435 "NotPrimaryNoSecondaryOk" RETRIABLE | NOT_PRIMARY;
    NOT_PRIMARY_OR_SECONDARY 13436 "NotPrimaryOrSecondary" RETRIABLE | NOT_PRIMARY;
    OUT_OF_DISK_SPACE 14031 "OutOfDiskSpace" 0;
    CLIENT_MARKED_KILLED 46841 "ClientMarkedKilled" 0;
    NAMESPACE_CANNOT_BE_SHARDED 28769 "NamespaceCannotBeSharded" 0;
    IDL_FAILED_TO_PARSE 40414 "IDLFailedToParse" 0;
    IDL_UNKNOWN_FIELD 40415 "IDLUnknownField" 0;
    IDL_DUPLICATE_FIELD 40413 "IDLDuplicateField" 0;
    NOT_A_RETRYABLE_WRITE_COMMAND 50768 "NotARetryableWriteCommand" 0;
    CONFIG_SERVER_UNREACHABLE 56846 "ConfigServerUnreachable" 0;
    REMOVE_SHARD_DRAINING_IN_PROGRESS 1003141 "RemoveShardDrainingInProgress" 0;
}

fn row(code: i32) -> Option<&'static (i32, &'static str, u8)> {
    TABLE.iter().find(|r| r.0 == code)
}
/// Every code with its name, in the table's order.
pub fn table() -> impl Iterator<Item = (i32, &'static str)> {
    TABLE.iter().map(|row| (row.0, row.1))
}
/// The codeName of `code`: the table's, or `Location<code>`.
pub fn code_name(code: i32) -> String {
    row(code).map_or_else(|| format!("Location{code}"), |r| r.1.to_string())
}
/// The categories of `code` as bits; 0 for an unknown code.
pub fn categories(code: i32) -> u8 {
    row(code).map_or(0, |r| r.2)
}

/// The error of a field that has another type than the one type it may have.
pub fn wrong_type(field: &str, found: &str, expected: &str) -> Error {
    crate::err!(TYPE_MISMATCH, "BSON field '{field}' is the wrong type '{found}', expected type '{expected}'")
}

/// The same, where a field takes several types: `[int, long]`.
pub fn wrong_types(field: &str, found: &str, expected: &str) -> Error {
    crate::err!(
        TYPE_MISMATCH,
        "BSON field '{field}' is the wrong type '{found}', expected types '{expected}'"
    )
}

/// The error of a document of so many bytes, which are more than the largest that leaves a server has.
pub fn size_refused(bytes: usize) -> Error {
    crate::err!(
        BSON_OBJECT_TOO_LARGE,
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and 16793600(16MB)"
    )
}

/// `err!(BAD_VALUE, "text {x}")` makes an [`Error`]; the code is a constant of [`codes`] or any i32 expression.
#[macro_export]
macro_rules! err {
    ($code:ident, $($arg:tt)+) => { $crate::Error::new($crate::codes::$code, format!($($arg)+)) };
    ($code:expr, $($arg:tt)+) => { $crate::Error::new($code, format!($($arg)+)) };
}
/// `bail!(BAD_VALUE, "text")` returns `Err(err!(..))`.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)+) => { return Err($crate::err!($($arg)+)) };
}
