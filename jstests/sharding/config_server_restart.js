/**
 * The config server holds the truth about placement, durably; while it is away routers go on with what they know.
 * It fails if routed reads and writes need the config server each time, or its documents or jobs do not come back.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const ns = "g.c";
assert.commandWorked(st.s.adminCommand({enableSharding: "g", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true}));
const coll = st.s.getCollection(ns);
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
assert.commandWorked(st.s.getDB("g").plain.insert({_id: 1}));
const catalog = () => ["shards", "databases", "collections", "chunks", "tags", "settings"].map(
    (name) => st.config0.getDB("config").getCollection(name).find().sort({_id: 1}).toArray());
const before = catalog();

st.configRS.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});

// What is known goes on.
assert.eq(2, coll.find().itcount());
assert.commandWorked(coll.insert([{x: -2}, {x: 2}]));
assert.eq(1, assert.commandWorked(coll.updateOne({x: 2}, {$set: {v: 1}})).modifiedCount);
assert.eq(1, st.s.getDB("g").plain.find().itcount());
assert.eq(4, coll.aggregate([{$count: "n"}]).next().n);

// What would change the catalog does not.
assert.commandFailed(st.s.adminCommand({enableSharding: "never", maxTimeMS: 2000}));
assert.commandFailed(st.s.adminCommand({split: ns, middle: {x: 50}, maxTimeMS: 2000}));

st.configRS.start(0, {}, true);
st.configRS.awaitNodesAgreeOnPrimary();
st.config0 = st.configRS.getPrimary();
const after = catalog();
before.forEach((documents, i) => assert.eq(documents, after[i]));

assert.soonNoExcept(() => st.s.adminCommand({split: ns, middle: {x: 50}}).ok === 1);
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 50}, max: {x: MaxKey}, toShard: first, waitForDelete: true}));
assert.commandWorked(st.s.adminCommand({enableSharding: "later"}));
assert.commandWorked(st.s.adminCommand({balancerStart: 1}));
assert.eq("full", assert.commandWorked(st.s.adminCommand({balancerStatus: 1})).mode);
assert.commandWorked(st.s.adminCommand({balancerStop: 1}));
assert.eq(4, coll.find().itcount());
assert.eq(1, coll.find({v: 1}).itcount());
assert.eq([], st.s.getDB("g").runCommand({checkMetadataConsistency: 1}).cursor.firstBatch);
st.stop();
