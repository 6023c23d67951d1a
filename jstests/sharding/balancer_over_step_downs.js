/**
 * The config server's primary steps down in the middle of a round and of each phase of a defragmentation: the next one goes on,
 * from the phase that was persisted.
 * It fails if the balancer is not taken up by another member, a phase is forgotten or begun too early, or documents are lost.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, placedChunks} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({
    shards: 2,
    mongos: 1,
    config: 3,
    other: {
        chunkSize: 1,
        configOptions: {setParameter: {balancerMigrationsThrottlingMs: 0}},
        rsOptions: {setParameter: {orphanCleanupDelaySecs: 0}}
    }
});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
const testDB = st.s.getDB("d");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "d", primaryShard: first}));
const shards = [st.shard0, st.shard1];

/** Another member leads; returns when it has said so. */
function stepDown() {
    const before = st.configRS.getPrimary();
    assert.commandWorked(before.adminCommand({replSetStepDown: 60, secondaryCatchUpPeriodSecs: 30}));
    assert.soon(() => st.configRS.getPrimary().host !== before.host, "nobody else leads", 120 * 1000);
    // A round is ten seconds away otherwise, where the last one found nothing to do.
    return st.configRS.getPrimary();
}
const migrating = () => shards.some((s) => s.getDB("config").migrationCoordinators.find().itcount() > 0);

// In the middle of a round, with a migration under way.
assert.commandWorked(admin.runCommand({shardCollection: "d.c", key: {_id: 1}}));
const pad = "p".repeat(64 * 1024);
for (let i = 0; i < 128; i++) {
    assert.commandWorked(testDB.c.insert({_id: i, pad: pad}));
}
const compliant = (ns) => assert.commandWorked(admin.runCommand({balancerCollectionStatus: ns})).balancerCompliant;
assert.eq(false, compliant("d.c"));
let hang = shards.map((s) => configureFailPoint(s, "migrateThreadHangAtStep3"));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(migrating, "no round has begun", 120 * 1000);
stepDown();
assert.commandWorked(admin.runCommand({balancerStatus: 1}));
hang.forEach((point) => point.off());
assert.soon(() => compliant("d.c"), () => tojson(chunksOf(testDB.c)), 180 * 1000);
assert.gt(Number(assert.commandWorked(admin.runCommand({balancerStatus: 1})).numBalancerRounds), 0);
assert.eq(128, testDB.c.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));

// Eight tiny chunks on each shard, beside one another by two.
const owners = [];
for (let i = 0; i < 16; i++) {
    owners.push([first, first, second, second][i % 4]);
}
const coll = placedChunks(testDB.e, owners);
for (let x = 0; x < 160; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
const entry = () => config.collections.findOne({_id: "d.e"});
const goesOnIn = (phase) => {
    assert.eq(phase, entry().defragmentationPhase);
    stepDown();
    assert.eq(phase, entry().defragmentationPhase);
    assert.eq(true, entry().defragmentCollection);
    assert.eq(160, coll.find().itcount());
};
const mergesFail = () => shards.map((s) => configureFailPoint(
    s, "failCommand", {failCommands: ["_shardsvrMergeChunks"], failInternalCommands: true, errorCode: 117}));

// Merges fail, so that the first phase goes on; then migrations hang, so that the second does.
let held = mergesFail();
hang = shards.map((s) => configureFailPoint(s, "migrateThreadHangAtStep3"));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.e", defragmentCollection: true}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => entry().defragmentationPhase === "mergeAndMeasureChunks", () => tojson(entry()), 120 * 1000);
goesOnIn("mergeAndMeasureChunks");
held.forEach((point) => point.off());
assert.soon(() => entry().defragmentationPhase === "moveAndMergeChunks" && migrating(), () => tojson(entry()), 180 * 1000);
assert.eq(8, chunksOf(coll).length);
assert(chunksOf(coll).every((c) => c.estimatedDataSizeBytes !== undefined), tojson(chunksOf(coll)));
goesOnIn("moveAndMergeChunks");
hang.forEach((point) => point.off());
assert.soon(() => !("defragmentCollection" in entry()), () => tojson([entry(), chunksOf(coll)]), 180 * 1000);
assert.eq(1, chunksOf(coll).length, tojson(chunksOf(coll)));

// What the last phase has to do is seldom much, so a collection is put into it as it is.
assert.commandWorked(admin.runCommand({balancerStop: 1}));
for (let i = 1; i < 8; i++) {
    assert.commandWorked(admin.runCommand({split: "d.e", middle: {x: i * 10}}));
}
held = mergesFail();
assert.commandWorked(config.collections.update(
    {_id: "d.e"}, {$set: {defragmentCollection: true, defragmentationPhase: "mergeChunks"}}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
goesOnIn("mergeChunks");
assert.eq(8, chunksOf(coll).length);
held.forEach((point) => point.off());
assert.soon(() => !("defragmentCollection" in entry()), () => tojson([entry(), chunksOf(coll)]), 180 * 1000);
assert.eq(1, chunksOf(coll).length);
assert(chunksOf(coll).every((c) => c.estimatedDataSizeBytes === undefined), tojson(chunksOf(coll)));
assert.eq(160, coll.find().itcount());
st.stop();
