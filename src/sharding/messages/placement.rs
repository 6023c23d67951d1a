//! Has a shard look at the catalog again.

message! {
    /// A collection's chunks.
    FlushRoutingTable = "_flushRoutingTableCacheUpdates" (ns) {
        /// Read anew; only wait for what is under way where it is false.
        sync_from_config "syncFromConfig": Option<bool>,
    }
}

message! {
    /// A database's primary.
    FlushDatabase = "_flushDatabaseCacheUpdates" (db) {
        /// Read anew; only wait for what is under way where it is false.
        sync_from_config "syncFromConfig": Option<bool>,
    }
}

impl FlushRoutingTable {
    pub fn anew(ns: &str) -> FlushRoutingTable {
        FlushRoutingTable { ns: ns.to_string(), sync_from_config: Some(true) }
    }
}

impl FlushDatabase {
    pub fn anew(db: &str) -> FlushDatabase {
        FlushDatabase { db: db.to_string(), sync_from_config: Some(true) }
    }
}
