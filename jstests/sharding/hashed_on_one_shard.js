/**
 * A cluster may have one shard: sharding by a hash must work there, too, and spread when a second shard comes.
 * It fails if dividing the hash space assumes two shards, or a new shard is left out of the next collection.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 1});
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
const chunks = (ns) => config.chunks.find({uuid: config.collections.findOne({_id: ns}).uuid}).sort({min: 1}).toArray();

assert.commandWorked(admin.runCommand({shardCollection: "one.c", key: {x: "hashed"}}));
assert.eq(1, chunks("one.c").length);
assert.eq({x: MinKey}, chunks("one.c")[0].min);
assert.eq({x: MaxKey}, chunks("one.c")[0].max);
assert.commandWorked(admin.runCommand({shardCollection: "one.four", key: {x: "hashed"}, numInitialChunks: 4}));
assert.eq(4, chunks("one.four").length);
for (let i = 0; i < 50; i++) {
    assert.commandWorked(st.s.getDB("one").c.insert({x: i}));
}
assert.eq(50, st.s.getDB("one").c.find().itcount());
assert.eq(1, st.s.getDB("one").c.find({x: 7}).itcount());
assert.commandFailedWithCode(admin.runCommand({removeShard: st.shard0.shardName}), 20);

const rs = new ReplSetTest({name: "second", nodes: 1, nodeOptions: {shardsvr: ""}});
rs.startSet();
rs.initiate();
assert.commandWorked(admin.runCommand({addShard: rs.getURL()}));
assert.commandWorked(admin.runCommand({shardCollection: "one.two", key: {x: "hashed"}}));
assert.eq(2, new Set(chunks("one.two").map((c) => c.shard)).size);
assert.eq(1, new Set(chunks("one.c").map((c) => c.shard)).size);
st.stop();
rs.stopSet();
