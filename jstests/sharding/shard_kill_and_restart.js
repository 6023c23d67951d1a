/**
 * A shard that is killed comes back with every acknowledged write and knows again which ranges are its own.
 * It fails if acknowledged writes are lost, orphans become visible, or the shard serves before it knows its placement.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const ns = "k.c";
assert.commandWorked(st.s.adminCommand({enableSharding: "k", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
const coll = st.s.getCollection(ns);
for (let x = -100; x < 100; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}, {writeConcern: {w: "majority"}}));
}
// Orphans stay on the first shard over the restart.
configureFailPoint(st.rs0.getPrimary(), "suspendRangeDeletion");
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second}));
const tasks = st.rs0.getPrimary().getDB("config").rangeDeletions.find({nss: ns}).toArray();
assert.eq(1, tasks.length);
assert.commandWorked(st.s.getDB("k").plain.insert({_id: 1}, {writeConcern: {w: "majority"}}));
// Of this collection nothing but a request makes the restarted shard ask what it owns.
assert.commandWorked(st.s.adminCommand({shardCollection: "k.d", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "k.d", middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: "k.d", min: {x: 0}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(st.s.getDB("k").d.insert([{x: -1}, {x: 1}], {writeConcern: {w: "majority"}}));
assert.commandWorked(st.rs0.getPrimary().getDB("k").d.insert({x: 2}, {writeConcern: {w: "majority"}}));
const lsid = {id: UUID()};
const retried = {
    update: "c", updates: [{q: {x: -1}, u: {$inc: {n: 1}}}], lsid: lsid, txnNumber: NumberLong(1),
    writeConcern: {w: "majority"},
};
assert.commandWorked(st.s.getDB("k").runCommand(retried));

st.rs0.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});

// Meanwhile the other shard answers, and what needs this one does not.
assert.eq(100, coll.find({x: {$gte: 0}}).itcount());
assert.commandFailed(st.s.getDB("k").runCommand({find: "c", filter: {x: -5}, maxTimeMS: 2000}));

st.rs0.start(0, {}, true);
st.rs0.awaitNodesAgreeOnPrimary();
const seen = [];
assert.soonNoExcept(() => seen.push(st.s.getDB("k").d.find().itcount()) > 0, "reads do not come back");
assert.eq([2], seen, "an orphan is visible");
assert.soonNoExcept(() => seen.push(coll.find().itcount()) > 1, "reads do not come back");
assert.eq([2, 200], seen, "orphans are visible");
assert.eq(100, coll.find({x: {$lt: 0}}).itcount());
assert.eq(1, st.s.getDB("k").plain.find().itcount());
assert.commandWorked(coll.insert({_id: "after", x: -50.5}));
assert.eq(1, assert.commandWorked(st.s.getDB("k").runCommand(retried)).n);
assert.eq(1, coll.findOne({x: -1}).n);

// The deletion that was pending is done after the restart: nothing holds it up any more.
const shard = st.rs0.getPrimary();
assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
assert.commandWorked(shard.adminCommand({cleanupOrphaned: ns}));
assert.eq(101, shard.getCollection(ns).find().itcount());
assert.eq(0, shard.getDB("config").rangeDeletions.find({nss: ns}).itcount());
assert.eq(true, assert.commandWorked(shard.adminCommand({shardingState: 1})).enabled);
assert.eq(first, shard.adminCommand({shardingState: 1}).shardName);

// The range comes back.
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: first, waitForDelete: true}));
assert.eq(201, coll.find().itcount());
st.stop();
