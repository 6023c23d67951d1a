/**
 * Small documents beside large ones: ranges are measured, so a draining shard empties and nothing is marked jumbo that can
 * be split; what has one key alone is split off and marked, and everything else leaves.
 * It fails if a range's size is guessed from the collection's average, or a chunk is marked before a split is tried.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, quickRounds} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, other: {chunkSize: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "m", primaryShard: second}));
const testDB = st.s.getDB("m");
function fill(coll, documents) {
    assert.commandWorked(admin.runCommand({shardCollection: coll.getFullName(), key: {x: 1}}));
    assert.commandWorked(admin.runCommand(
        {moveRange: coll.getFullName(), min: {x: MinKey}, max: {x: MaxKey}, toShard: first, waitForDelete: true}));
    const bulk = coll.initializeUnorderedBulkOp();
    documents.forEach((d) => bulk.insert(d));
    assert.commandWorked(bulk.execute());
}
const mixed = [], single = [];
for (let i = 0; i < 8000; i++) {
    mixed.push({x: i, p: "p".repeat(60)});
}
// From a hundred bytes to a megabyte, the larger the key.
for (let i = 0; i <= 40; i++) {
    mixed.push({x: 9000 + i, p: "p".repeat(Math.round(100 * Math.pow(10, i / 10)))});
}
for (let i = 0; i < 60; i++) {
    mixed.push({x: 10000 + i, p: "p".repeat(100 * 1024)});
    single.push({x: i < 20 ? i : i < 45 ? 20 : i, p: "p".repeat(100 * 1024)});
}
fill(testDB.mixed, mixed);
fill(testDB.single, single);

for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({removeShard: first}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const left = (coll) => chunksOf(coll).filter((c) => c.shard === first);
assert.soon(() => left(testDB.mixed).length === 0, () => tojson(left(testDB.mixed)), 90 * 1000, 200);
assert.eq(0, chunksOf(testDB.mixed).filter((c) => c.jumbo).length);

// The key 20 has 2.5 megabytes: it stays, alone and marked.
assert.soon(() => left(testDB.single).length === 1 && left(testDB.single)[0].jumbo,
            () => tojson(left(testDB.single)), 90 * 1000, 200);
assert.eq([{x: 20}, {x: 45}], [left(testDB.single)[0].min, left(testDB.single)[0].max]);
assert.eq("draining",
          assert.commandWorked(admin.runCommand({balancerCollectionStatus: "m.single"})).firstComplianceViolation);

// Told to, the balancer moves it as well.
assert.commandWorked(config.settings.update(
    {_id: "balancer"}, {$set: {attemptToBalanceJumboChunks: true}}, {upsert: true}));
assert.soon(() => left(testDB.single).length === 0, () => tojson(left(testDB.single)), 90 * 1000, 200);
assert.soon(() => admin.runCommand({removeShard: first}).state === "completed");
assert.eq(8101, testDB.mixed.find().itcount());
assert.eq(60, testDB.single.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
