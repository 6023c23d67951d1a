//! The generic arguments: fields that every command may carry and none declares.

/// Their names, sorted.
const NAMES: &[&str] = &[
    "$audit",
    "$client",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$db",
    "$gleStats",
    "$impersonatedUsers",
    "$oplogQueryData",
    "$queryOptions",
    "$readPreference",
    "$replData",
    "$tenant",
    "$topologyTime",
    "$traceCtx",
    "allowImplicitCollectionCreation",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "clientOperationKey",
    "comment",
    "coordinator",
    "databaseVersion",
    "expectPrefix",
    "help",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "mayBypassWriteBlocking",
    "mayMoveDocument",
    "rawData",
    "readConcern",
    "requestGossipRoutingCache",
    "rewriteStaleShardVersion",
    "routerSeedsVersion",
    "serialization_context",
    "shardVersion",
    "startOrContinueTransaction",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "tracking_info",
    "txnNumber",
    "txnRetryCounter",
    "txnUUID",
    "versionContext",
    "writeConcern",
];

/// Whether a strict command accepts a field of this name without declaring it.
pub fn is_generic(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
#[test]
fn the_names_are_sorted() {
    assert!(NAMES.is_sorted());
    assert!(is_generic("lsid") && is_generic("$db") && !is_generic("filter"));
}
