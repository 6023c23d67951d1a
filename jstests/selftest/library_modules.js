/**
 * Every library that tests commonly import is there, whatever directory a test thinks it is in, and `load` makes its names global.
 * It fails if a module does not parse, misses a name, or if a script that loads it does not see what it exports.
 *
 * @tags: [requires_own_servers]
 */
const expected = {
    "jstests/aggregation/extras/utils.js": "arrayEq orderedArrayEq anyEq documentEq resultsEq assertArrayEq assertErrorCode assertErrCodeAndErrMsgContains testExpression",
    "jstests/concurrency/fsm_workload_helpers/server_types.js": "isMongos isMongod",
    "jstests/libs/analyze_plan.js": "getPlanStage getPlanStages planHasStage isCollscan isIxscan isIndexOnly getWinningPlan getAggPlanStage aggPlanHasStage",
    "jstests/libs/query/analyze_plan.js": "getWinningPlanFromExplain getQueryPlanner getExecutionStages hasRejectedPlans",
    "jstests/libs/check_metadata_consistency_helpers.js": "MetadataConsistencyChecker",
    "jstests/libs/check_orphans_are_deleted_helpers.js": "CheckOrphansAreDeletedHelpers",
    "jstests/libs/check_routing_table_consistency_helpers.js": "RoutingTableConsistencyChecker",
    "jstests/libs/check_shard_filtering_metadata_helpers.js": "CheckShardFilteringMetadataHelpers",
    "jstests/libs/chunk_manipulation_util.js": "moveChunkParallel moveChunkStepNames migrateStepNames pauseMoveChunkAtStep pauseMigrateAtStep",
    "jstests/libs/cleanup_orphaned_util.js": "CleanupOrphanedUtil",
    "jstests/libs/collection_drop_recreate.js": "assertDropCollection assertCreateCollection assertDropAndRecreateCollection",
    "jstests/libs/config_shard_util.js": "ConfigShardUtil",
    "jstests/libs/curop_helpers.js": "waitForCurOpByFailPoint waitForCurOpByFailPointNoNS waitForCurOpByFilter",
    "jstests/libs/discover_topology.js": "DiscoverTopology Topology",
    "jstests/libs/fail_point_util.js": "configureFailPoint configureFailPointForRS kDefaultWaitForFailPointTimeout",
    "jstests/libs/feature_flag_util.js": "FeatureFlagUtil",
    "jstests/libs/fixture_helpers.js": "FixtureHelpers",
    "jstests/libs/get_index_helpers.js": "GetIndexHelpers",
    "jstests/libs/index_catalog_helpers.js": "IndexCatalogHelpers",
    "jstests/libs/log.js": "findMatchingLogLine findMatchingLogLines iterateMatchingLogLines",
    "jstests/libs/namespace_utils.js": "getDBNameAndCollNameFromFullNamespace",
    "jstests/libs/os_helpers.js": "isLinux isWindows",
    "jstests/libs/parallelTester.js": "Thread CountDownLatch ParallelTester",
    "jstests/libs/parallel_shell_helpers.js": "funWithArgs",
    "jstests/libs/profiler.js": "profilerHasSingleMatchingEntryOrThrow profilerHasZeroMatchingEntriesOrThrow",
    "jstests/libs/replsettest.js": "ReplSetTest",
    "jstests/libs/retryable_writes_util.js": "RetryableWritesUtil",
    "jstests/libs/sbe_util.js": "checkSbeFullyEnabled",
    "jstests/libs/shardingtest.js": "ShardingTest",
    "jstests/libs/storage_engine_utils.js": "storageEngineIsWiredTiger",
    "jstests/libs/test_background_ops.js": "startParallelOps",
    "jstests/libs/transactions_util.js": "TransactionsUtil",
    "jstests/libs/auto_retry_transaction_in_sharding.js": "withTxnAndAutoRetryOnMongos",
    "jstests/libs/ttl_util.js": "TTLUtil",
    "jstests/libs/uuid_util.js": "getUUIDFromListCollections getUUIDFromConfigCollections extractUUIDFromObject",
    "jstests/libs/wait_for_command.js": "waitForCommand",
    "jstests/libs/write_concern_util.js": "assertWriteConcernError stopServerReplication restartServerReplication shardCollectionWithChunks",
    "jstests/replsets/rslib.js": "reconnect reconfig waitForAllMembers getLatestOp",
    "jstests/sharding/libs/chunk_bounds_util.js": "chunkBoundsUtil",
    "jstests/sharding/libs/create_sharded_collection_util.js": "CreateShardedCollectionUtil",
    "jstests/sharding/libs/find_chunks_util.js": "findChunksUtil",
    "jstests/sharding/libs/remove_shard_util.js": "removeShard",
    "jstests/sharding/libs/shard_versioning_util.js": "ShardVersioningUtil",
    "jstests/sharding/libs/sharded_index_util.js": "ShardedIndexUtil",
};

for (const [path, names] of Object.entries(expected)) {
    const module = await import(path);
    const missing = names.split(" ").filter((name) => module[name] === undefined);
    assert.eq([], missing, path);
}

assert.eq("undefined", typeof globalThis.arrayEq);
load("jstests/aggregation/extras/utils.js");
assert(globalThis.arrayEq([1, 2], [2, 1]));
