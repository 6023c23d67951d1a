/**
 * A router's fsync with lock keeps writes away from all shards, whichever router or node they come through, and any router unlocks.
 * It fails if a write gets past it, or an unlock does not reach a shard.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const db = st.s0.getDB("d");
assert.commandWorked(st.s0.adminCommand({enableSharding: "d", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s0.adminCommand({shardCollection: "d.c", key: {_id: "hashed"}}));
assert.commandWorked(db.c.insert([...Array(20).keys()].map((i) => ({_id: i}))));

const plain = assert.commandWorked(st.s0.adminCommand({fsync: 1}));
assert.gt(plain.numFiles, 0);
assert.eq(3, Object.keys(plain.all).length, tojson(plain));

const locked = assert.commandWorked(st.s0.adminCommand({fsync: 1, lock: true}));
assert(Object.values(locked.all).every((reply) => reply.lockCount == 1), tojson(locked));
try {
    const insert = {insert: "c", documents: [{_id: 100}], maxTimeMS: 300};
    assert.commandFailedWithCode(st.s1.getDB("d").runCommand(insert), ErrorCodes.MaxTimeMSExpired);
    assert.commandFailedWithCode(st.rs1.getPrimary().getDB("x").runCommand(insert), ErrorCodes.MaxTimeMSExpired);
    assert.eq(20, db.c.find().itcount());
} finally {
    assert.eq(0, assert.commandWorked(st.s1.adminCommand({fsyncUnlock: 1})).lockCount);
}
assert.commandWorked(db.c.insert({_id: 200}));
assert.commandFailedWithCode(st.s1.adminCommand({fsyncUnlock: 1}), ErrorCodes.IllegalOperation);
st.stop();
