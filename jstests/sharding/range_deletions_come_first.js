/**
 * A new primary knows the range deletions that are to come before it takes a range back: nothing that was moved in is deleted.
 * It fails if documents go that came back to the shard.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({
    shards: 2, mongos: 1, config: 1,
    rs: {nodes: 2, settings: {electionTimeoutMillis: 2000}, setParameter: {orphanCleanupDelaySecs: 1, receiveChunkWaitForRangeDeleterTimeoutMS: 20000}}
});
const db = st.s.getDB("test");
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {x: 1}}));
const documents = Array.from({length: 50}, (_, x) => ({_id: x, x: x}));
assert.commandWorked(db.runCommand({insert: "c", documents: documents, writeConcern: {w: 2, wtimeout: 30000}}));
const move = (to) => st.s.adminCommand({moveChunk: "test.c", find: {x: 1}, to: to, _waitForDelete: false});
assert.commandWorked(move(st.shard1.shardName));
assert.eq(1, st.rs0.getPrimary().getDB("config").rangeDeletions.find().itcount());
st.rs0.stepUp(st.rs0.getSecondary());
const back = move(st.shard0.shardName);
assert(back.ok || back.code === 200, tojson(back));
assert.soon(() => st.rs0.getPrimary().getDB("config").rangeDeletions.find().itcount() === 0);
assert.eq(50, db.c.find().itcount());
assert.eq(back.ok ? 50 : 0, st.rs0.getPrimary().getDB("test").c.find().itcount());
st.stop();
