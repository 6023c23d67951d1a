/**
 * The balancer's second loop: two actions of defragmentation lie its throttle apart, two merges of the auto-merger for one
 * collection lie that throttle apart, and fifty actions are under way at a time. The main loop chooses as long as it may.
 * It fails if a throttle or a limit is not read, the auto-merger's holds up another collection, or the fifty are more or fewer.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, ownCluster, placedChunks, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("t");
const configPrimary = st.configRS.getPrimary();
const set = (parameters) => assert.commandWorked(configPrimary.adminCommand(Object.assign({setParameter: 1}, parameters)));
const count = (...names) => names.map((name) => chunksOf(testDB[name]).length);
const HOUR = 3600 * 1000;
const point = quickRounds(configPrimary);

// On each shard there is something to merge, of each of two collections: in an hour one merge for each collection.
for (const name of ["a", "b"]) {
    placedChunks(testDB[name], [first, first, second, second]);
}
set({autoMergerIntervalSecs: 1, autoMergerThrottlingMS: HOUR, minSnapshotHistoryWindowInSeconds: 0, transactionLifetimeLimitSeconds: 1});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => count("a", "b").every((n) => n < 4), () => tojson(count("a", "b")));
afterRounds(admin, 5);
assert.eq([3, 3], count("a", "b"));
set({autoMergerThrottlingMS: 0});
assert.soon(() => count("a", "b").every((n) => n === 2), () => tojson(count("a", "b")));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(config.settings.update({_id: "automerge"}, {$set: {enabled: false}}, {upsert: true}));

// Of defragmentation, one action of any collection.
set({chunkDefragmentationThrottlingMS: HOUR});
for (const name of ["c", "d"]) {
    placedChunks(testDB[name], [first, first, second, second]);
    assert.commandWorked(admin.runCommand({configureCollectionBalancing: `t.${name}`, defragmentCollection: true}));
}
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const sum = (numbers) => numbers.reduce((a, b) => a + b);
assert.soon(() => sum(count("c", "d")) < 8, () => tojson(count("c", "d")));
afterRounds(admin, 5);
assert.eq(7, sum(count("c", "d")));
const waiting = () => config.collections.find({defragmentCollection: true}).toArray().map((c) => c._id);
assert.eq(["t.c", "t.d"], waiting().sort());
set({chunkDefragmentationThrottlingMS: 0});
assert.soon(() => waiting().length === 0, () => tojson(waiting()), 120 * 1000);
assert.commandWorked(admin.runCommand({balancerStop: 1}));

// Fifty measurements are asked for when none of them ends.
const owners = Array.from({length: 120}, (_, i) => i % 2 ? second : first);
placedChunks(testDB.many, owners);
const block = {failCommands: ["_shardsvrMeasureRange"], failInternalCommands: true, blockConnection: true, blockTimeMS: HOUR};
const held = [st.shard0, st.shard1].map((shard) => configureFailPoint(shard, "failCommand", block));
const operations = (node, filter) => node.getDB("admin").aggregate([{$currentOp: {allUsers: true}}, {$match: filter}]).toArray();
const outstanding = () => Number(operations(configPrimary, {desc: "BalancerSecondary"})[0].outstandingActions);
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "t.many", defragmentCollection: true}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => outstanding() >= 50, () => `${outstanding()} actions are under way`);
afterRounds(admin, 5);
assert.eq(50, outstanding());
held.forEach((one) => one.off());
for (const shard of [st.shard0, st.shard1]) {
    const measuring = operations(shard, {"command._shardsvrMeasureRange": "t.many"});
    assert.gt(measuring.length, 0);
    measuring.forEach((op) => assert.commandWorked(shard.adminCommand({killOp: 1, op: op.opid})));
}
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "t.many", defragmentCollection: false}));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.eq(0, outstanding());

// Without any time for choosing, nothing is chosen.
assert.commandWorked(admin.runCommand({shardCollection: "t.large", key: {x: 1}}));
assert.commandWorked(testDB.large.insert(Array.from({length: 64}, (_, x) => ({x: x, pad: "p".repeat(100 * 1024)}))));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "t.large", chunkSize: 1}));
set({balancerChunksSelectionTimeoutMs: 0});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
afterRounds(admin, 5);
assert.eq(1, chunksOf(testDB.large).length);
set({balancerChunksSelectionTimeoutMs: 5000});
assert.soon(() => chunksOf(testDB.large).length > 1, () => tojson(chunksOf(testDB.large)));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
