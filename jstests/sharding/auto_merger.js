/**
 * The auto-merger joins neighbouring chunks of a shard that never moved, or not within the windows of reads in the past and
 * of transactions; it is switched for the cluster and for a collection.
 * It fails if chunks A-D, E-F and G-H of the example do not become one each, a run is joined over another shard's chunk, or
 * a switch, the interval or a window is not read.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, quickRounds, shardByRanges} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
const configAdmin = st.configRS.getPrimary().getDB("admin");
const set = (parameters) => assert.commandWorked(configAdmin.runCommand(Object.assign({setParameter: 1}, parameters)));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "a", primaryShard: first}));
const testDB = st.s.getDB("a");
const points = [];
for (let x = 10; x <= 80; x += 10) {
    points.push({x: x});
}
const owners = [first, first, first, first, second, second, first, first, second];
const layout = (coll) => chunksOf(coll).map((c) => [c.min.x, c.shard]);
const merged = [[MinKey, first], [40, second], [60, first], [80, second]];
for (const name of ["example", "excluded", "young"]) {
    shardByRanges(testDB[name], {x: 1}, points, owners);
}
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "a.excluded", enableAutoMerger: false}));
sh.disableBalancing(testDB.young);
for (let x = 0; x < 90; x++) {
    assert.commandWorked(testDB.example.insert({x: x}));
}

// Switched off for the cluster, nothing happens, however short the interval.
assert.commandWorked(config.settings.update({_id: "automerge"}, {$set: {enabled: false}}, {upsert: true}));
set({autoMergerIntervalSecs: 1, autoMergerThrottlingMS: 0, minSnapshotHistoryWindowInSeconds: 0,
     transactionLifetimeLimitSeconds: 1});
const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({balancerStart: 1}));
afterRounds(admin, 20);
assert.eq(9, chunksOf(testDB.example).length);

// Switched on.
assert.commandWorked(config.settings.update({_id: "automerge"}, {$set: {enabled: true}}));
assert.soon(() => tojson(layout(testDB.example)) === tojson(merged), () => tojson(layout(testDB.example)), 60 * 1000);
assert.eq(90, testDB.example.find().itcount());
assert.gt(config.changelog.find({what: "merge", ns: "a.example"}).itcount(), 0);
assert.eq(9, chunksOf(testDB.excluded).length);
assert.eq(9, chunksOf(testDB.young).length, "noBalance excludes as well");

// Switched on for the collection.
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "a.excluded", enableAutoMerger: true}));
assert.soon(() => tojson(layout(testDB.excluded)) === tojson(merged), () => tojson(layout(testDB.excluded)), 60 * 1000);

// Within a window, only what never moved is merged: each of the two windows counts.
assert.commandWorked(admin.runCommand({balancerStop: 1}));
for (const windows of [{minSnapshotHistoryWindowInSeconds: 1000}, {transactionLifetimeLimitSeconds: 1000}]) {
    set(Object.assign({minSnapshotHistoryWindowInSeconds: 0, transactionLifetimeLimitSeconds: 1}, windows));
    testDB.window.drop();
    shardByRanges(testDB.window, {x: 1}, points, owners);
    assert.commandWorked(admin.runCommand({balancerStart: 1}));
    const expected = [[MinKey, first], [40, second], [50, second], [60, first], [80, second]];
    assert.soon(() => tojson(layout(testDB.window)) === tojson(expected), () => tojson(layout(testDB.window)), 60 * 1000);
    afterRounds(admin, 20);
    assert.eq(expected, layout(testDB.window));
    assert.commandWorked(admin.runCommand({balancerStop: 1}));
}

// A jumbo chunk, and the edge of a zone, part a run; a stopped balancer merges nothing.
set({minSnapshotHistoryWindowInSeconds: 0, transactionLifetimeLimitSeconds: 1});
shardByRanges(testDB.parted, {x: 1}, [{x: 10}, {x: 20}, {x: 30}, {x: 40}], [first, first, first, first, first]);
const uuid = config.collections.findOne({_id: "a.parted"}).uuid;
assert.commandWorked(st.configRS.getPrimary().getDB("config").chunks.update({uuid: uuid, min: {x: 20}}, {$set: {jumbo: true}}));
assert.commandWorked(admin.runCommand({addShardToZone: first, zone: "z"}));
assert.commandWorked(admin.runCommand({updateZoneKeyRange: "a.parted", min: {x: 40}, max: {x: MaxKey}, zone: "z"}));
quickRounds(st.configRS.getPrimary(), 20);
assert.eq(5, chunksOf(testDB.parted).length);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const parts = [[MinKey, first], [20, first], [30, first], [40, first]];
assert.soon(() => tojson(layout(testDB.parted)) === tojson(parts), () => tojson(layout(testDB.parted)), 60 * 1000);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
