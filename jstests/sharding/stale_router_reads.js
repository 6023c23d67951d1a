/**
 * A router that has not heard of a migration must find out when it asks the old owner, and answer as if it had known.
 * It fails if a shard answers a request of an older version, or a router does not refresh and ask again.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const mover = st.s0;
const stale = st.s1;
const ns = "stale.c";
assert.commandWorked(mover.adminCommand({enableSharding: "stale", primaryShard: first}));
assert.commandWorked(mover.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(mover.adminCommand({split: ns, middle: {x: 0}}));
for (let x = -10; x < 10; x++) {
    assert.commandWorked(mover.getCollection(ns).insert({_id: x, x: x, g: Math.abs(x) % 2}));
}
const coll = stale.getCollection(ns);

let owner = first;
function move() {
    owner = owner === first ? second : first;
    assert.commandWorked(mover.adminCommand(
        {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: owner, waitForDelete: true}));
}
function errorsOnShards() {
    return [st.shard0, st.shard1].map((shard) => Number(
        assert.commandWorked(shard.adminCommand({serverStatus: 1})).shardingStatistics.countStaleConfigErrors))
        .reduce((a, b) => a + b);
}

const reads = {
    "targeted find": () => assert.eq(5, coll.findOne({x: 5})._id),
    "range": () => assert.eq(10, coll.find({x: {$gte: 0}}).itcount()),
    "everything, sorted": () => assert.eq(20, coll.find().sort({x: 1}).batchSize(3).toArray().length),
    "count": () => assert.eq(10, coll.count({x: {$gte: 0}})),
    "distinct": () => assert.eq([0, 1], coll.distinct("g", {x: {$gte: 0}}).sort()),
    "aggregate": () => assert.eq(20, coll.aggregate([{$group: {_id: null, n: {$sum: 1}}}]).toArray()[0].n),
    "targeted aggregate": () => assert.eq(1, coll.aggregate([{$match: {x: 3}}]).itcount()),
    "explain": () => assert.eq(owner, coll.find({x: 1}).explain().queryPlanner.winningPlan.shards[0].shardName),
    "listIndexes": () => assert.eq(2, coll.getIndexes().length),
};
for (const [name, read] of Object.entries(reads)) {
    read();
    move();
    jsTestLog(`after a move unknown to the router: ${name}`);
    read();
}
assert.gt(errorsOnShards(), 0);

// Splits and merges make nobody stale: the shards' answers do not change.
coll.findOne({x: 1});
const before = errorsOnShards();
assert.commandWorked(mover.adminCommand({split: ns, middle: {x: 5}}));
assert.commandWorked(mover.adminCommand({mergeChunks: ns, bounds: [{x: 0}, {x: MaxKey}]}));
assert.eq(20, coll.find().itcount());
assert.eq(5, coll.findOne({x: 5})._id);
assert.eq(before, errorsOnShards());
st.stop();
