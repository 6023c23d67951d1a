/**
 * Ranges that wait to be deleted are found under the name that their collection has now. It fails if a renamed collection seems to have no
 * orphans, or one that takes the old name seems to have them.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, other: {rsOptions: {setParameter: {orphanCleanupDelaySecs: 3600}}}});
const db = st.s.getDB("d");
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "d.c", key: {_id: 1}}));
assert.commandWorked(db.c.insert([...Array(20).keys()].map((i) => ({_id: i}))));
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {_id: 0}, toShard: st.shard1.shardName}));
const orphans = (name) => assert.commandWorked(st.rs0.getPrimary().getDB("d").runCommand({collStats: name})).numOrphanDocs;
assert.eq(20, orphans("c"));
assert.commandWorked(db.c.renameCollection("r"));
assert.eq(20, orphans("r"));
assert.commandWorked(db.createCollection("c"));
assert.eq(0, orphans("c"));
const waits = st.rs0.getPrimary().adminCommand({cleanupOrphaned: "d.r", maxTimeMS: 300});
assert.commandFailedWithCode(waits, ErrorCodes.MaxTimeMSExpired);
assert.eq(20, db.r.countDocuments({}));
TestData.skipCheckOrphans = true;
st.stop();
