// The prelude's checks of a cluster under the names that tests and hooks import.
const run = (name) => (mongos, given) => ClusterChecks.run(name, mongos, given);

export const MetadataConsistencyChecker = { run: run("checkMetadataConsistency") };
export const RoutingTableConsistencyChecker = { run: run("checkRoutingTableConsistency") };
export const CheckShardFilteringMetadataHelpers = { run: run("checkShardFilteringMetadata") };
export const CheckOrphansAreDeletedHelpers = { runCheck: run("checkOrphansAreDeleted") };
