// What a node knows of a collection's placement.
const stepsOf = (conn) => (conn.rs && conn.rs.getPrimary ? conn.rs.getPrimary() : conn);

export const ShardVersioningUtil = {
    getMetadataOnShard: (conn, ns) => assert.commandWorked(stepsOf(conn).adminCommand({ getShardVersion: ns, fullMetadata: true })).metadata,
    assertCollectionVersionEquals(conn, ns, version) {
        assert.eq(version, ShardVersioningUtil.getMetadataOnShard(conn, ns).collVersion);
    },
    assertShardVersionEquals(conn, ns, version) {
        assert.eq(version, ShardVersioningUtil.getMetadataOnShard(conn, ns).shardVersion);
    },
    // Moves a chunk so that the recipient does not look at the new placement by itself.
    moveChunkNotRefreshRecipient(mongos, ns, fromShard, toShard, find) {
        const recipient = stepsOf(toShard);
        assert.commandWorked(recipient.adminCommand({ configureFailPoint: "doNotRefreshRecipientAfterCommit", mode: "alwaysOn" }));
        assert.commandWorked(mongos.adminCommand({ moveChunk: ns, find, to: toShard.shardName, _waitForDelete: true }));
        assert.commandWorked(recipient.adminCommand({ configureFailPoint: "doNotRefreshRecipientAfterCommit", mode: "off" }));
    },
    kIgnoredShardVersion: { e: ObjectId("00000000ffffffffffffffff"), t: Timestamp(4294967295, 4294967295), v: Timestamp(0, 0) },
};
