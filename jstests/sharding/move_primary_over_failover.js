/**
 * After movePrimary the next primary of the old shard knows that the database has gone: whoever still sends writes there is
 * refused. It fails if a write lands on the shard that no longer has the database.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2, config: 1, rs: {nodes: 2, settings: {electionTimeoutMillis: 2000}}});
const [one, two] = [st.s0.getDB("test"), st.s1.getDB("test")];
assert.commandWorked(st.s0.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(one.c.insert({_id: 1}, {writeConcern: {w: 2}}));
assert.eq(1, two.c.find().itcount());
// The second router learns nothing of this.
assert.commandWorked(st.s0.adminCommand({movePrimary: "test", to: st.shard1.shardName}));
st.rs0.stepUp(st.rs0.getSecondary());
assert.commandWorked(two.c.insert({_id: 2}));
assert.commandWorked(two.d.insert({_id: 1}));
for (const db of [one, two]) {
    assert.eq([{_id: 1}, {_id: 2}], db.c.find().sort({_id: 1}).toArray());
    assert.eq(1, db.d.find().itcount());
}
const old = st.rs0.getPrimary().getDB("test");
assert.eq(0, old.c.find({_id: 2}).itcount() + old.d.find().itcount());
assert.eq(2, st.rs1.getPrimary().getDB("test").c.find().itcount());
st.stop();
