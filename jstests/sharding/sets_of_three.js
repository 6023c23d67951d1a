/**
 * A cluster whose shards and config server are sets of three: routers and shards follow new primaries, what was acknowledged
 * stays, migrations and catalog changes work before and after, and a range deletion goes on under another primary.
 * It fails if a router keeps asking an old primary, if a document is lost or twice there, or if work is forgotten.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({
    shards: 2,
    mongos: 1,
    config: 3,
    rs: {nodes: 3, settings: {electionTimeoutMillis: 2000}, setParameter: {orphanCleanupDelaySecs: 5}}
});
const db = st.s.getDB("test");
const coll = db.c;
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {x: 0}}));
for (let x = -20; x < 20; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
assert.commandWorked(st.s.adminCommand({moveRange: "test.c", min: {x: 0}, max: {x: MaxKey}, toShard: st.shard1.shardName}));
assert.eq(40, coll.find().itcount());

// The donor's next primary deletes the range.
const donor = st.rs0.getPrimary();
assert.eq(20, donor.getDB("test").c.find({x: {$gte: 0}}).itcount());
assert.commandWorked(donor.adminCommand({replSetStepDown: 60}));
assert.soon(() => st.rs0.getPrimary().host !== donor.host);
assert.commandWorked(coll.insert({_id: -100, x: -100}));
assert.eq(41, coll.find().itcount());
const next = st.rs0.getPrimary();
assert.soon(() => next.getDB("config").rangeDeletions.find().itcount() === 0, "the deletion is forgotten");
assert.eq(0, next.getDB("test").c.find({x: {$gte: 0}}).itcount());

// A shard's primary is killed.
const victim = st.rs1.getPrimary();
const id = st.rs1.getNodeId(victim);
st.rs1.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
assert.soon(() => db.runCommand({insert: "c", documents: [{_id: 100, x: 100}], lsid: {id: UUID()}, txnNumber: NumberLong(1)}).n === 1);
assert.eq(42, coll.find().itcount());
st.rs1.start(id, {}, true);

// The config server's primary steps down; the catalog still changes.
const config = st.configRS.getPrimary();
assert.commandWorked(config.adminCommand({replSetStepDown: 60}));
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {x: -10}}));
assert.commandWorked(st.s.adminCommand({moveRange: "test.c", min: {x: -10}, max: {x: 0}, toShard: st.shard1.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.d", key: {_id: "hashed"}}));
for (let i = 0; i < 20; i++) {
    assert.commandWorked(db.d.insert({_id: i}));
}
assert.eq(20, db.d.find().itcount());
assert.eq(42, coll.find().itcount());
assert.eq(42, coll.distinct("_id").length);
st.stop();
