/**
 * Unsharded data follows its database's primary, and a router that knows the old one is told by the database version.
 * It fails if a former primary answers for the database, or movePrimary leaves lastMod as it was.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.s0.adminCommand({enableSharding: "moved", primaryShard: first}));
const here = st.s0.getDB("moved");
const there = st.s1.getDB("moved");
assert.commandWorked(here.c.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(here.createView("v", "c", [{$match: {_id: 2}}]));
assert.eq(2, there.c.find().itcount());

const entry = () => st.s0.getDB("config").databases.findOne({_id: "moved"});
const before = entry();
assert.eq(first, before.primary);
assert.commandWorked(st.s0.adminCommand({movePrimary: "moved", to: second}));
const after = entry();
assert.eq(second, after.primary);
assert.eq(before.version.uuid, after.version.uuid);
assert.eq(before.version.lastMod + 1, after.version.lastMod);

// The other router still believes in the first shard.
assert.eq(2, there.c.find().itcount());
assert.commandWorked(st.s0.adminCommand({movePrimary: "moved", to: first}));
assert.commandWorked(there.c.insert({_id: 3}));
assert.eq(3, st.shard0.getDB("moved").c.find().itcount());
assert.eq(0, st.shard1.getDB("moved").c.find().itcount());
assert.commandWorked(st.s0.adminCommand({movePrimary: "moved", to: second}));
assert.commandWorked(there.createCollection("made"));
assert.eq(1, st.shard1.getDB("moved").getCollectionInfos({name: "made"}).length);
assert.eq(1, there.v.find().itcount());
assert.commandWorked(st.s0.adminCommand({movePrimary: "moved", to: first}));
assert.sameMembers(["c", "made", "v", "system.views"], there.getCollectionNames());
assert.commandWorked(st.s0.adminCommand({movePrimary: "moved", to: second}));
assert.commandWorked(there.c.createIndex({a: 1}));
assert.eq(2, st.shard1.getDB("moved").c.getIndexes().length);

// The shard itself says what is wrong with an old version.
const old = before.version;
let reply = st.shard1.getDB("moved").runCommand({find: "c", databaseVersion: old, shardVersion: {
    e: ObjectId("000000000000000000000000"), t: Timestamp(0, 0), v: Timestamp(0, 0)}});
assert.commandFailedWithCode(reply, 249);
assert.eq("StaleDbVersion", reply.codeName);
assert.eq("moved", reply.db);
assert.eq(old.uuid, reply.vReceived.uuid);
assert.eq(old.lastMod, reply.vReceived.lastMod);
if (reply.vWanted) {
    assert.eq(entry().version.lastMod, reply.vWanted.lastMod);
}
reply = st.shard0.getDB("moved").runCommand({find: "c", databaseVersion: old, shardVersion: {
    e: ObjectId("000000000000000000000000"), t: Timestamp(0, 0), v: Timestamp(0, 0)}});
assert.commandFailedWithCode(reply, 249);
reply = st.shard1.getDB("moved").runCommand({find: "c", databaseVersion: entry().version, shardVersion: {
    e: ObjectId("000000000000000000000000"), t: Timestamp(0, 0), v: Timestamp(0, 0)}});
assert.eq(3, assert.commandWorked(reply).cursor.firstBatch.length);
st.stop();
