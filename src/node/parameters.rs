//! Server parameters: one row each in a const table, values per node.
//!
//! A row says of which type the parameter is, its default, whether `--setParameter` and `setParameter` may set it, and
//! whether anything reads it: names that tools pass and that mean nothing here are accepted with a warning.

use crate::log_components::{self, VERBOSITY};
use document::{Document, Result, Value, bail, err};
use parking_lot::RwLock;
use protocol::replication::source::Preference;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The default of a parameter, which also gives its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(&'static str),
    /// Any document; the default is `{}`.
    Document,
    /// The levels of the log's components: a document of which a part may be given.
    LogComponents,
    /// A list of strings, given on the command line with commas.
    List(&'static [&'static str]),
}

const LOG_LEVEL: &str = "logLevel";
const LOG_COMPONENTS: &str = "logComponentVerbosity";

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub default: Initial,
    pub at_startup: bool,
    pub at_runtime: bool,
    /// Smallest value of a number; a smaller one is refused with BadValue.
    pub min: f64,
    /// Largest value of a number.
    pub max: f64,
    /// Something reads it. Others are accepted and answered, and do nothing.
    pub effective: bool,
    /// The texts it may be; any where there are none.
    pub one_of: &'static [&'static str],
    /// How many bytes its text may have.
    pub bytes_max: usize,
    /// What else its text has to be.
    pub check: fn(&str) -> Result<()>,
}

const fn row(name: &'static str, default: Initial) -> Parameter {
    Parameter {
        name,
        default,
        at_startup: true,
        at_runtime: true,
        min: f64::NEG_INFINITY,
        max: f64::INFINITY,
        effective: true,
        one_of: &[],
        bytes_max: usize::MAX,
        check: |_| Ok(()),
    }
}
/// Accepted, and without effect.
const fn inert(name: &'static str, default: Initial) -> Parameter {
    Parameter { effective: false, ..row(name, default) }
}
impl Parameter {
    const fn min(mut self, min: f64) -> Parameter {
        self.min = min;
        self
    }
    const fn max(mut self, max: f64) -> Parameter {
        self.max = max;
        self
    }
    const fn one_of(mut self, texts: &'static [&'static str]) -> Parameter {
        self.one_of = texts;
        self
    }
    const fn bytes_max(mut self, bytes: usize) -> Parameter {
        self.bytes_max = bytes;
        self
    }
    const fn check(mut self, check: fn(&str) -> Result<()>) -> Parameter {
        self.check = check;
        self
    }
    const fn startup_only(mut self) -> Parameter {
        self.at_runtime = false;
        self
    }
    const fn runtime_only(mut self) -> Parameter {
        self.at_startup = false;
        self
    }
}

/// DO NOT CHANGE: the names of configuration files and commands.
const CLUSTER_AUTH_MODES: &[&str] = &["keyFile", "sendKeyFile", "sendX509", "x509"];
/// DO NOT CHANGE: as those; and their older names.
const TLS_MODES: &[&str] = &["disabled", "allowTLS", "preferTLS", "requireTLS"];
const SSL_MODES: &[&str] = &["disabled", "allowSSL", "preferSSL", "requireSSL"];

use Initial::{Bool, Double, Int, List, Long, Text};

/// The table, by name.
pub const TABLE: &[Parameter] = &[
    row("acceptApiVersion2", Bool(false)).startup_only(),
    row("allowMultipleArbiters", Bool(false)).startup_only(),
    inert("allowMultipleUsersWithApiStrict", Bool(false)),
    row("allowDiskUseByDefault", Bool(true)),
    row("allowRolesFromX509Certificates", Bool(true)).startup_only(),
    row("analyzeShardKeyNumRanges", Int(100)).min(1.0),
    inert("AsyncRequestsSenderUseBaton", Bool(true)),
    row("authFailedDelayMs", Int(0)).min(0.0).startup_only(),
    row("authenticationMechanisms", List(&["MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"])).startup_only(),
    inert("automationServiceDescriptor", Text("")).bytes_max(64),
    row("autoMergerIntervalSecs", Int(3600)).min(1.0),
    row("autoMergerThrottlingMS", Int(15_000)).min(0.0),
    row("balancerChunksSelectionTimeoutMs", Int(5000)).min(0.0),
    row("balancerMigrationsThrottlingMs", Int(1000)).min(0.0),
    row("balancerPolicy", Text("dataSize")).one_of(&["dataSize", "idealChunkCount", "chunkCountThresholds"]),
    inert("bypassRslogsOnStartup", Bool(false)),
    row("changeStreamOptions", Initial::Document),
    row("chunkDefragmentationThrottlingMS", Int(0)).min(0.0),
    inert("chunkMigrationConcurrency", Int(1)).min(1.0),
    inert("chunkMigrationFetcherMaxBufferedSizeBytesPerThread", Int(0)).min(0.0),
    inert("collectionSamplingLogIntervalSeconds", Int(10)),
    inert("connPoolMaxConnsPerHost", Int(200)).startup_only(),
    row("clusterAuthMode", Text("undefined")).one_of(CLUSTER_AUTH_MODES).runtime_only(),
    row("coordinateCommitReturnImmediatelyAfterPersistingDecision", Bool(false)),
    row("createRollbackDataFiles", Bool(true)),
    row("cursorTimeoutMillis", Long(600_000)).min(1.0),
    row("dbCheckHealthLogEveryNBatches", Int(100)).min(1.0),
    inert("defaultConfigCommandTimeoutMS", Int(30_000)).min(1.0),
    inert("diagnosticDataCollectionDirectorySizeMB", Int(200)),
    inert("diagnosticDataCollectionEnabled", Bool(true)),
    inert("diagnosticDataCollectionPeriodMillis", Int(1000)),
    row("disableLogicalSessionCacheRefresh", Bool(false)).startup_only(),
    row("disableResumableRangeDeleter", Bool(false)),
    inert("disableTransitionFromLatestToLastContinuous", Bool(true)),
    row("enableElectionHandoff", Bool(true)),
    row("enableFlowControl", Bool(true)),
    row("enableLocalhostAuthBypass", Bool(true)).startup_only(),
    inert("enableReconfigRollbackCommittedWritesCheck", Bool(true)),
    inert("enableShardedIndexConsistencyCheck", Bool(true)),
    row("enableTestCommands", Bool(false)).startup_only(),
    inert("featureFlagBulkWriteCommand", Bool(true)).startup_only(),
    inert("featureFlagCheckMetadataConsistency", Bool(true)).startup_only(),
    inert("featureFlagDefaultReadMaxTimeMS", Bool(false)).startup_only(),
    inert("featureFlagGlobalIndexes", Bool(false)).startup_only(),
    inert("featureFlagReshardingImprovements", Bool(false)).startup_only(),
    inert("featureFlagSbeFull", Bool(false)).startup_only(),
    inert("featureFlagTrackUnshardedCollectionsUponCreation", Bool(false)).startup_only(),
    inert("featureFlagTrackUnshardedCollectionsUponMoveCollection", Bool(false)).startup_only(),
    inert("featureFlagTransitionToCatalogShard", Bool(false)).startup_only(),
    inert("featureFlagUpdateOneWithoutShardKey", Bool(true)).startup_only(),
    row("flowControlDecayConstant", Double(0.5)).min(0.0),
    row("flowControlFudgeFactor", Double(0.95)).min(0.0),
    inert("flowControlMaxSamples", Int(1_000_000)).min(1.0),
    row("flowControlMinTicketsPerSecond", Int(100)).min(1.0),
    inert("flowControlSamplePeriod", Int(1000)).min(1.0),
    row("flowControlTargetLagSeconds", Int(10)).min(1.0),
    row("flowControlThresholdLagPercentage", Double(0.5)).min(0.0),
    row("flowControlTicketAdderConstant", Int(1000)).min(0.0),
    row("flowControlTicketMultiplierConstant", Double(1.05)).min(0.0),
    inert("flowControlWarnThresholdSeconds", Int(10)).min(0.0),
    inert("globalConnPoolIdleTimeoutMinutes", Int(i32::MAX)).startup_only(),
    inert("heapProfilingEnabled", Bool(false)),
    inert("heartBeatFrequencyMs", Int(10_000)),
    row("honorSystemUmask", Bool(false)).startup_only(),
    inert("indexBuildMinAvailableDiskSpaceMB", Int(500)),
    row("indexMaxNumGeneratedKeysPerDocument", Int(100_000)).min(1.0).startup_only(),
    row("ingressConnectionEstablishmentBurstCapacitySecs", Double(f64::MAX)).min(f64::MIN_POSITIVE),
    row("ingressConnectionEstablishmentMaxQueueDepth", Int(0)).min(0.0),
    row("ingressConnectionEstablishmentRateLimiterEnabled", Bool(false)),
    row("ingressConnectionEstablishmentRatePerSec", Int(i32::MAX)).min(1.0),
    row("initialSyncSourceReadPreference", Text("")).one_of(Preference::NAMES).startup_only(),
    row("initialSyncTransientErrorRetryPeriodSeconds", Int(86_400)).min(0.0),
    row("internalDocumentSourceBucketAutoMaxMemoryBytes", Int(104_857_600)).min(1.0),
    inert("internalDocumentSourceCursorBatchSizeBytes", Int(4 * 1024 * 1024)).min(0.0),
    row("internalDocumentSourceGraphLookupMaxMemoryBytes", Int(104_857_600)).min(1.0),
    row("internalDocumentSourceGroupMaxMemoryBytes", Int(104_857_600)).min(1.0),
    row("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", Int(104_857_600)).min(1.0),
    inert("internalInsertMaxBatchSize", Int(500)),
    row("internalLookupStageIntermediateDocumentMaxSizeBytes", Int(104_857_600)).min(1.0),
    inert("internalPipelineLengthLimit", Int(1000)).startup_only(),
    inert("internalQueryAllowShardedLookup", Bool(true)),
    inert("internalQueryCacheSize", Int(5000)),
    inert("internalQueryDefaultDOP", Int(1)),
    inert("internalQueryExecYieldIterations", Int(1000)),
    inert("internalQueryExecYieldPeriodMS", Int(10)),
    inert("internalQueryFacetBufferSizeBytes", Int(104_857_600)),
    row("internalQueryFacetMaxOutputDocSizeBytes", Int(104_857_600)).min(1.0),
    inert("internalQueryForceClassicEngine", Bool(false)),
    row("internalQueryGlobalProfilingFilter", Bool(false)).startup_only(),
    inert("internalQueryForceIntersectionPlans", Bool(false)),
    inert("internalQueryFrameworkControl", Text("trySbeRestricted")),
    row("internalQueryMaxAddToSetBytes", Int(104_857_600)).min(1.0),
    row("internalQueryMaxAllowedDensifyDocs", Int(500_000)).min(0.0),
    row("internalQueryMaxBlockingSortMemoryUsageBytes", Int(104_857_600)).min(0.0),
    row("internalQueryMaxPushBytes", Int(104_857_600)).min(1.0),
    inert("internalQueryPlanEvaluationCollFraction", Double(0.3)),
    inert("internalQueryPlanEvaluationMaxResults", Int(101)).min(1.0),
    inert("internalQueryPlanEvaluationWorks", Int(10_000)).min(1.0),
    inert("internalQueryPlannerEnableHashIntersection", Bool(false)),
    inert("internalQueryPlannerMaxIndexedSolutions", Int(64)),
    inert("internalQueryProhibitBlockingMergeOnMongoS", Bool(false)),
    row("internalQuerySlotBasedExecutionHashLookupApproxMemoryUseInBytesBeforeSpill", Int(104_857_600))
        .min(1.0),
    inert("internalQueryStatsRateLimit", Int(0)),
    inert("internalValidateFeaturesAsPrimary", Bool(true)),
    row("internalQueryJavaScriptFnTimeoutMillis", Int(60_000)).min(1.0),
    row("internalQueryMaxJsEmitBytes", Int(104_857_600)).min(1.0),
    row("jsHeapLimitMB", Int(1100)).min(0.0),
    row("KeysRotationIntervalSec", Int(7_776_000)).min(1.0).startup_only(),
    row("loadBalancerPort", Int(0)).min(0.0).max(65535.0).startup_only(),
    inert("loadRoutingTableOnStartup", Bool(true)),
    row("localLogicalSessionTimeoutMinutes", Int(30)).startup_only(),
    inert(LOG_COMPONENTS, Initial::LogComponents),
    row("logicalSessionRefreshMillis", Int(300_000)).startup_only(),
    row(LOG_LEVEL, Int(0)).min(0.0),
    row("maxAcceptableLogicalClockDriftSecs", Long(31_536_000)).min(0.0).startup_only(),
    inert("maxBSONDepth", Int(200)).startup_only(),
    inert("maxIndexBuildDrainBatchSize", Int(1000)),
    inert("maxIndexBuildMemoryUsageMegabytes", Int(200)),
    inert("maxLogSizeKB", Int(10)),
    inert("maxNumActiveUserIndexBuilds", Int(3)),
    inert("maxOplogTruncationPointsAfterStartup", Int(100)).startup_only(),
    row("maxSessions", Int(1_000_000)).min(1.0).startup_only(),
    row("maxSyncSourceLagSecs", Int(30)).min(1.0).startup_only(),
    row("maxTransactionLockRequestTimeoutMillis", Int(5)),
    row("metadataRefreshInTransactionMaxWaitBehindCritSecMS", Int(500)),
    row("migrateCloneInsertionBatchDelayMS", Int(0)).min(0.0),
    row("migrateCloneInsertionBatchSize", Int(0)).min(0.0),
    row("migrationLockAcquisitionMaxWaitMS", Int(500)).min(0.0),
    row("minNumChunksForSessionsCollection", Int(1024)).startup_only(),
    inert("minOplogTruncationPoints", Int(10)).startup_only(),
    row("minSnapshotHistoryWindowInSeconds", Int(300)).min(0.0),
    inert("mirrorReads", Initial::Document),
    row("mongosShutdownTimeoutMillisForSignaledShutdown", Int(0)).min(0.0),
    row("notablescan", Bool(false)),
    row("numInitialSyncAttempts", Int(10)).min(1.0),
    row("numInitialSyncConnectAttempts", Int(10)).min(1.0),
    inert("oidcIdentityProviders", Text("")).startup_only(),
    inert("opensslCipherConfig", Text("")).startup_only(),
    inert("oplogBatchDelayMillis", Int(0)).startup_only(),
    inert("oplogFetcherInitialSyncMaxFetcherRestarts", Int(10)),
    row("oplogFetcherUsesExhaust", Bool(true)),
    row("oplogInitialFindMaxSeconds", Int(60)).min(1.0),
    row("orphanCleanupDelaySecs", Int(900)).min(0.0),
    row("periodicNoopIntervalSecs", Int(10)).startup_only(),
    inert("persistedChunkCacheUpdateMaxBatchSize", Int(1000)),
    row("planCacheSize", Text("5%")).check(|text| crate::plan_cache::parse_size(text, 0).map(drop)),
    row("processMemoryLimitMB", Int(0)).min(0.0),
    row("processUmask", Text("")).startup_only(),
    inert("profileOperationResourceConsumptionMetrics", Bool(false)).startup_only(),
    row("proxyProtocolTimeoutSecs", Int(120)).min(1.0),
    row("queryAnalysisSampleExpirationSecs", Int(604_800)).min(1.0),
    row("queryAnalysisSamplerBurstMultiplier", Double(2.0)).min(1.0),
    row("queryAnalysisSamplerConfigurationRefreshSecs", Int(10)).min(1.0).startup_only(),
    row("queryAnalysisSamplerInActiveThresholdSecs", Int(300)).min(1.0),
    row("queryAnalysisWriterIntervalSecs", Int(90)).min(1.0).startup_only(),
    row("queryAnalysisWriterMaxMemoryUsageBytes", Int(100 << 20)).min(1.0),
    inert("quiesceShutdownTimeoutMillis", Int(0)),
    row("quiet", Bool(false)),
    row("rangeDeleterBatchDelayMS", Int(20)).min(0.0),
    row("rangeDeleterBatchSize", Int(i32::MAX)).min(0.0),
    inert("rangeDeleterHighPriority", Bool(false)),
    inert("readHedgingMode", Text("on")),
    row("receiveChunkWaitForRangeDeleterTimeoutMS", Int(10_000)),
    inert("recoverShardingState", Bool(true)).startup_only(),
    row("replBatchLimitBytes", Int(104_857_600)).min(16_777_216.0).max(104_857_600.0),
    row("replBatchLimitOperations", Int(5000)).min(1.0).max(1_000_000.0),
    row("replElectionTimeoutOffsetLimitFraction", Double(0.15)).min(0.01).max(1.0),
    row("redactClientLogData", Bool(false)),
    inert("replMonitorRefreshPeriod", Int(30)),
    inert("replWriterThreadCount", Int(16)).startup_only(),
    row("reportOpWriteConcernCountersInServerStatus", Bool(false)).startup_only(),
    row("requireApiVersion", Bool(false)),
    row("reshardingCriticalSectionTimeoutMillis", Int(5000)).min(0.0),
    inert("reshardingDelayBeforeRemainingOperationTimeQueryMillis", Int(0)),
    inert("reshardingMinimumOperationDurationMillis", Int(300_000)),
    inert("roleGraphInvalidationIsFatal", Bool(false)),
    row("rollbackTimeLimitSecs", Long(86_400)).min(1.0),
    row("scramIterationCount", Int(10_000)).min(5000.0),
    row("scramSHA256IterationCount", Int(15_000)).min(5000.0),
    inert("shardedIndexConsistencyCheckIntervalMS", Int(600_000)).startup_only(),
    inert("ShardingTaskExecutorPoolMaxConnecting", Int(2)),
    inert("ShardingTaskExecutorPoolMaxSize", Int(i32::MAX)),
    inert("ShardingTaskExecutorPoolMinSize", Int(1)),
    inert("ShardingTaskExecutorPoolReplicaSetMatching", Text("automatic")),
    inert("shardSplitGarbageCollectionDelayMS", Int(0)),
    row("shutdownTimeoutMillisForSignaledShutdown", Int(0)).min(0.0),
    inert("skipCorruptDocumentsWhenCloning", Bool(false)),
    inert("skipShardingConfigurationChecks", Bool(false)).startup_only(),
    inert("slowConnectionThresholdMillis", Int(100)),
    row("sslMode", Text("disabled")).one_of(SSL_MODES).runtime_only(),
    inert("storageEngineConcurrencyAdjustmentAlgorithm", Text("throughputProbing")),
    inert("storeFindAndModifyImagesInSideCollection", Bool(true)),
    row("suppressNoTLSPeerCertificateWarning", Bool(false)),
    inert("syncdelay", Double(60.0)),
    inert("taskExecutorPoolSize", Int(1)),
    inert("tcmallocReleaseRate", Double(1.0)),
    inert("tcpFastOpenServer", Bool(true)).startup_only(),
    inert("testingDiagnosticsEnabled", Bool(false)).startup_only(),
    inert("textSearchEnabled", Bool(true)),
    inert("traceExceptions", Bool(false)),
    row("tlsClusterAuthX509Override", Initial::Document).startup_only(),
    row("tlsMode", Text("disabled")).one_of(TLS_MODES).runtime_only(),
    row("tlsUseSystemCA", Bool(false)).startup_only(),
    row("tlsWithholdClientCertificate", Bool(false)).startup_only(),
    row("tlsX509ClusterAuthDNOverride", Text("")).startup_only(),
    row("tlsX509ExpirationWarningThresholdDays", Int(30)).min(0.0).startup_only(),
    row("transactionLifetimeLimitSeconds", Int(60)).min(1.0),
    inert("transactionLockRequestTimeoutMillis", Int(5)),
    row("transactionSizeLimitBytes", Long(i64::MAX)).min(1.0),
    row("TransactionRecordMinimumLifetimeMinutes", Int(30)).min(0.0).startup_only(),
    row("ttlMonitorEnabled", Bool(true)),
    row("ttlMonitorSleepSecs", Int(60)).min(1.0),
    row("userCacheInvalidationIntervalSecs", Int(30)).min(1.0),
    row("waitForStepDownOnNonCommandShutdown", Bool(true)),
    inert("warmMinConnectionsInShardingTaskExecutorPoolOnStartup", Bool(true)).startup_only(),
    inert("watchdogPeriodSeconds", Int(-1)),
    inert("wiredTigerConcurrentReadTransactions", Int(128)),
    inert("wiredTigerConcurrentWriteTransactions", Int(128)),
    inert("wiredTigerCursorCacheSize", Int(-100)),
    inert("wiredTigerEngineRuntimeConfig", Text("")),
    row("writePeriodicNoops", Bool(true)).startup_only(),
];

/// What begins the name of a parameter that sets a fail point.
pub const FAIL_POINT: &str = "failpoint.";
/// What begins the name of a feature flag, shown as `{value, version}`.
pub const FEATURE_FLAG: &str = "featureFlag";

/// The version that has a feature; `None` where the flag is off.
pub fn flag_version(name: &str) -> Option<&'static str> {
    FLAG_VERSIONS.iter().find(|(flag, _)| *flag == name).map(|(_, version)| *version)
}

/// Flags of features that this server has, with the version they came with.
const FLAG_VERSIONS: &[(&str, &str)] = &[
    ("featureFlagBulkWriteCommand", "8.0"),
    ("featureFlagCheckMetadataConsistency", "7.0"),
    ("featureFlagDefaultReadMaxTimeMS", "8.0"),
    ("featureFlagTrackUnshardedCollectionsUponMoveCollection", "8.0"),
    ("featureFlagUpdateOneWithoutShardKey", "7.1"),
];

/// The row of a name.
pub fn find(name: &str) -> Option<(usize, &'static Parameter)> {
    TABLE.iter().enumerate().find(|(_, p)| p.name == name)
}

impl Initial {
    fn value(self) -> Value {
        match self {
            Bool(v) => Value::Boolean(v),
            Int(v) => Value::Int32(v),
            Long(v) => Value::Int64(v),
            Double(v) => Value::Double(v),
            Text(v) => Value::from(v),
            Initial::Document => Value::Document(Document::new()),
            Initial::LogComponents => Value::Document(log_components::initial()),
            List(items) => Value::Array(items.iter().map(|s| Value::from(*s)).collect()),
        }
    }
}

/// The parameters of one node.
pub struct Parameters {
    values: RwLock<Vec<Value>>,
    /// Names outside the table that a node with test commands was given; kept, answered, without effect.
    others: RwLock<Document>,
    /// Read on every request, so kept out of the lock.
    require_api_version: AtomicBool,
    test_commands: AtomicBool,
    slow_ms: AtomicI64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            values: RwLock::new(TABLE.iter().map(|p| p.default.value()).collect()),
            others: RwLock::default(),
            require_api_version: AtomicBool::new(false),
            test_commands: AtomicBool::new(false),
            slow_ms: AtomicI64::new(100),
        }
    }
}

impl Parameters {
    pub fn new() -> Parameters {
        Parameters::default()
    }
    /// The value of a parameter of the table; `None` for an unknown name.
    pub fn get(&self, name: &str) -> Option<Value> {
        match find(name) {
            Some((at, _)) => self.values.read().get(at).cloned(),
            None => self.others.read().get(name).cloned(),
        }
    }
    /// A boolean parameter; false for a name that is none.
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| v.truthy())
    }
    /// A numeric parameter; 0 for a name that is none.
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).and_then(|v| v.as_i64()).unwrap_or(0)
    }
    /// As [`Parameters::int`], with what stands behind the point.
    pub fn double(&self, name: &str) -> f64 {
        self.get(name).and_then(|v| v.as_f64()).unwrap_or(0.0)
    }
    pub fn text(&self, name: &str) -> String {
        self.get(name).and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
    }
    pub fn require_api_version(&self) -> bool {
        self.require_api_version.load(Ordering::Relaxed)
    }
    pub fn test_commands(&self) -> bool {
        self.test_commands.load(Ordering::Relaxed)
    }
    /// Operations at least this long are logged; negative logs all.
    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Ordering::Relaxed)
    }
    pub fn set_slow_ms(&self, millis: i64) {
        self.slow_ms.store(millis, Ordering::Relaxed);
    }

    /// Sets one from `--setParameter name=text`. Returns a warning where the parameter does nothing.
    ///
    /// # Errors
    /// BadValue for an unknown name (unless test commands are on), a value of the wrong type, one out of range.
    pub fn set_at_startup(&self, name: &str, text: &str) -> Result<Option<String>> {
        let Some((at, parameter)) = find(name) else {
            if !self.test_commands() {
                bail!(BAD_VALUE, "Unknown --setParameter '{name}'");
            }
            if name.starts_with(FAIL_POINT) {
                return Ok(None);
            }
            self.others.write().insert(name, guess(text));
            return Ok(Some(format!("Unknown --setParameter '{name}' has no effect")));
        };
        if !parameter.at_startup {
            bail!(BAD_VALUE, "Cannot use --setParameter to set '{name}' at startup");
        }
        let value = parse(parameter, text)?;
        self.store(at, parameter, value)?;
        Ok((!parameter.effective).then(|| format!("--setParameter '{name}' has no effect")))
    }

    /// What [`Parameters::set_at_runtime`] would refuse.
    ///
    /// # Errors
    /// InvalidOptions for an unknown name, IllegalOperation for one that is set at startup only, BadValue, TypeMismatch and
    /// Overflow for a value it cannot have.
    pub fn check_at_runtime(&self, name: &str, value: &Value) -> Result<()> {
        match find(name) {
            None if self.others.read().contains_key(name) => Ok(()),
            None => Err(unrecognized(name)),
            Some((_, parameter)) if !parameter.at_runtime => {
                bail!(ILLEGAL_OPERATION, "not allowed to change [{name}] at runtime")
            }
            Some((_, parameter)) => check(parameter, &convert(parameter, value)?),
        }
    }

    /// Sets one at run time and returns the old value.
    ///
    /// # Errors
    /// Those of [`Parameters::check_at_runtime`].
    pub fn set_at_runtime(&self, name: &str, value: &Value) -> Result<Value> {
        let Some((at, parameter)) = find(name) else {
            if let Some(slot) = self.others.write().get_mut(name) {
                return Ok(std::mem::replace(slot, value.clone()));
            }
            return Err(unrecognized(name));
        };
        self.check_at_runtime(name, value)?;
        self.store(at, parameter, convert(parameter, value)?)
    }

    fn store(&self, at: usize, parameter: &Parameter, value: Value) -> Result<Value> {
        check(parameter, &value)?;
        match parameter.name {
            "requireApiVersion" => self.require_api_version.store(value.truthy(), Ordering::Relaxed),
            "enableTestCommands" => self.test_commands.store(value.truthy(), Ordering::Relaxed),
            _ => {}
        }
        let mut values = self.values.write();
        let slot = values.get_mut(at).ok_or_else(|| err!(INTERNAL_ERROR, "parameter table out of step"))?;
        let value = match (&*slot, value) {
            (Value::Document(tree), Value::Document(given))
                if parameter.default == Initial::LogComponents =>
            {
                Value::Document(log_components::changed(tree, &given)?)
            }
            (_, value) => value,
        };
        let old = std::mem::replace(slot, value.clone());
        level_whole_log(&mut values, parameter.name, &value);
        Ok(old)
    }

    /// All parameters with their values, by name, with the row where there is one.
    pub fn all(&self) -> Vec<(String, Value, Option<&'static Parameter>)> {
        let values = self.values.read();
        let known = TABLE.iter().zip(values.iter()).map(|(p, v)| (p.name.to_string(), v.clone(), Some(p)));
        let others = self.others.read();
        let mut all: Vec<_> =
            known.chain(others.iter().map(|(n, v)| (n.to_string(), v.clone(), None))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// The level of the whole log has two names: what is set under one shows under the other.
fn level_whole_log(values: &mut [Value], name: &str, value: &Value) {
    let slot = |name: &str| find(name).map_or(usize::MAX, |(at, _)| at);
    match (name, value) {
        (LOG_COMPONENTS, Value::Document(tree)) => {
            if let (Some(level), Some(other)) = (tree.get(VERBOSITY), values.get_mut(slot(LOG_LEVEL))) {
                *other = level.clone();
            }
        }
        (LOG_LEVEL, level) => {
            if let Some(Value::Document(tree)) = values.get_mut(slot(LOG_COMPONENTS)) {
                tree.insert(VERBOSITY, level.clone());
            }
        }
        _ => {}
    }
}

fn unrecognized(name: &str) -> document::Error {
    err!(INVALID_OPTIONS, "attempted to set unrecognized parameter [{name}], use help:true to see options ")
}

/// What the row says of a value of its type.
fn check(parameter: &Parameter, value: &Value) -> Result<()> {
    let name = parameter.name;
    if let Some(number) = value.as_f64().filter(|number| *number < parameter.min) {
        let min = parameter.min;
        bail!(
            BAD_VALUE,
            "Invalid value for parameter {name}: {number} is not greater than or equal to {min}"
        );
    }
    if let Some(number) = value.as_f64().filter(|number| *number > parameter.max) {
        let max = parameter.max;
        bail!(BAD_VALUE, "Invalid value for parameter {name}: {number} is not less than or equal to {max}");
    }
    if let (Initial::LogComponents, Value::Document(given)) = (parameter.default, value) {
        log_components::changed(&log_components::initial(), given)?;
    }
    let Some(text) = value.as_str() else { return Ok(()) };
    if !parameter.one_of.is_empty() && !parameter.one_of.contains(&text) {
        bail!(BAD_VALUE, "Invalid value for parameter {name}: '{text}' is none of {:?}", parameter.one_of);
    }
    (parameter.check)(text)?;
    if text.len() > parameter.bytes_max {
        bail!(OVERFLOW, "Value for {name} must be no more than {} bytes", parameter.bytes_max);
    }
    Ok(())
}

fn wrong(parameter: &Parameter, shown: &str) -> document::Error {
    err!(BAD_VALUE, "Invalid value for parameter {}: {shown}", parameter.name)
}

/// A value as written on a command line.
fn parse(parameter: &Parameter, text: &str) -> Result<Value> {
    let bad = || wrong(parameter, text);
    Ok(match parameter.default {
        Bool(_) => Value::Boolean(match text {
            "true" | "1" | "on" => true,
            "false" | "0" | "off" => false,
            _ => return Err(bad()),
        }),
        Int(_) => Value::Int32(text.parse().map_err(|_| bad())?),
        Long(_) => Value::Int64(text.parse().map_err(|_| bad())?),
        Double(_) => Value::Double(text.parse().ok().filter(|f: &f64| f.is_finite()).ok_or_else(bad)?),
        Text(_) => Value::from(text),
        Initial::Document | Initial::LogComponents => {
            crate::relaxed::parse(text).filter(|v| matches!(v, Value::Document(_))).ok_or_else(bad)?
        }
        List(_) => Value::Array(text.split(',').map(|s| Value::from(s.trim())).collect()),
    })
}

/// A value as given in a command. Anything is a boolean, true or false; numbers of any type and booleans are numbers, doubles are
/// cut where the parameter is an integer.
fn convert(parameter: &Parameter, value: &Value) -> Result<Value> {
    let bad = || {
        let shown = value.type_name();
        err!(TYPE_MISMATCH, "BSON field '{}' is the wrong type '{shown}'", parameter.name)
    };
    let coerced = |to: &str| {
        let (name, shown) = (parameter.name, value.type_name());
        err!(BAD_VALUE, "Failed to set parameter {name}: a value of type {shown} is no {to} in its range")
    };
    let number = || match value {
        Value::Boolean(b) => Some(i64::from(*b)),
        Value::Double(f) if f.is_nan() => None,
        Value::Decimal128(d) => Some(d.round().to_i64_saturating()),
        v => document::number::to_i64_saturating(v),
    };
    Ok(match (parameter.default, value) {
        (Bool(_), v) => Value::Boolean(v.truthy()),
        (Int(_), _) => {
            Value::Int32(number().and_then(|n| i32::try_from(n).ok()).ok_or_else(|| coerced("int"))?)
        }
        (Long(_), _) => Value::Int64(number().ok_or_else(|| coerced("long"))?),
        (Double(_), Value::Boolean(b)) => Value::Double(f64::from(*b)),
        (Double(_), v) => Value::Double(v.as_f64().ok_or_else(|| coerced("double"))?),
        (Text(_), Value::String(_))
        | (Initial::Document | Initial::LogComponents, Value::Document(_))
        | (List(_), Value::Array(_)) => value.clone(),
        _ => return Err(bad()),
    })
}

/// The type of an unknown test parameter, from its text.
fn guess(text: &str) -> Value {
    match text {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ => match (text.parse::<i32>(), crate::relaxed::parse(text)) {
            (Ok(n), _) => Value::Int32(n),
            (_, Some(v)) => v,
            _ => Value::from(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_unless_test_commands_are_on() {
        let p = Parameters::new();
        assert_eq!(
            p.set_at_startup("noSuchThing", "1").unwrap_err().message,
            "Unknown --setParameter 'noSuchThing'"
        );
        p.set_at_startup("enableTestCommands", "1").unwrap();
        assert!(p.set_at_startup("noSuchThing", "1").unwrap().is_some());
        assert_eq!(p.get("noSuchThing"), Some(Value::Int32(1)));
    }

    #[test]
    fn values_keep_the_type_of_their_row() {
        let p = Parameters::new();
        assert_eq!(p.set_at_runtime("logLevel", &Value::Double(2.0)).unwrap(), Value::Int32(0));
        assert_eq!(p.get("logLevel"), Some(Value::Int32(2)));
        assert!(p.set_at_runtime("logLevel", &Value::from("x")).is_err());
        assert!(p.set_at_runtime("logLevel", &Value::Int32(-1)).is_err());
        assert_eq!(p.set_at_runtime("enableTestCommands", &Value::Boolean(true)).unwrap_err().code, 20);
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = TABLE.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }
}
