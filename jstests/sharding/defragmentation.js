/**
 * Defragmentation merges neighbours, measures, moves small chunks next to others and merges again; it can be watched, ended
 * early, and leaves no trace in the catalog.
 * It fails if a small chunk that could go to a neighbour is left, sizes or phase stay behind, the collection is balanced
 * as usual meanwhile, it never ends when a chunk is split meanwhile, what has become possible waits for the next round's time, or
 * chunks are merged over the edge of a zone that came after the phase began.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, ownCluster, quickRounds, shardByRanges} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("d", {other: {chunkSize: 1}});
const configPrimary = st.configRS.getPrimary();
for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
// Sixteen chunks, most of them tiny; the one from 100 on has half a megabyte, and so has the one from 40 on.
const points = [], owners = [first];
for (let i = 1; i < 16; i++) {
    points.push({x: i * 10});
    owners.push([first, first, second][i % 3]);
}
shardByRanges(testDB.c, {x: 1}, points, owners);
const pad = "p".repeat(50 * 1024);
for (let x = 0; x < 160; x++) {
    const large = (x >= 100 && x < 110) || (x >= 40 && x < 50);
    assert.commandWorked(testDB.c.insert(large ? {x: x, pad: pad} : {x: x}));
}
const status = () => assert.commandWorked(admin.runCommand({balancerCollectionStatus: "d.c"}));
const entry = () => config.collections.findOne({_id: "d.c"});

// Asked for while the balancer is off: the first phase waits, and shows.
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.c", defragmentCollection: true}));
assert.eq(true, entry().defragmentCollection);
assert.eq(false, status().balancerCompliant);
assert.eq("defragmentingChunks", status().firstComplianceViolation);
assert.eq("mergeAndMeasureChunks", status().details.currentPhase);
assert.gt(Number(status().details.progress.remainingChunksToProcess), 0);
assert.eq(16, chunksOf(testDB.c).length);

// The first phase cannot end while merges fail for a passing reason; what it measures meanwhile stands with the chunks.
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, chunkDefragmentationThrottlingMS: 0}));
const mergesFail = () => configureFailPoint(
    st.shard0, "failCommand", {failCommands: ["_shardsvrMergeChunks"], failInternalCommands: true, errorCode: 117});
const held = mergesFail();
const point = quickRounds(configPrimary);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => chunksOf(testDB.c).some((c) => c.estimatedDataSizeBytes !== undefined), () => tojson(chunksOf(testDB.c)));
assert.eq("mergeAndMeasureChunks", entry().defragmentationPhase);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
const measured = chunksOf(testDB.c).find((c) => c.estimatedDataSizeBytes !== undefined);
const inside = testDB.c.find({x: {$gte: measured.min.x, $lt: measured.max.x}}).toArray();
assert.eq(inside.reduce((sum, d) => sum + Object.bsonsize(d), 0), Number(measured.estimatedDataSizeBytes), tojson(measured));

// On to the end.
held.off();
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => !("defragmentCollection" in entry()), () => tojson([status(), chunksOf(testDB.c)]), 90 * 1000);
assert(!("defragmentationPhase" in entry()), tojson(entry()));
const chunks = chunksOf(testDB.c);
assert(chunks.every((c) => c.estimatedDataSizeBytes === undefined), tojson(chunks));
assert.lte(chunks.length, 3, tojson(chunks));
assert(chunks.every((c, i) => i === 0 || chunks[i - 1].shard !== c.shard), tojson(chunks));
assert.eq(160, testDB.c.find().itcount());
assert.eq(true, status().balancerCompliant);

// Ended early: what was measured goes, the chunks stay.
const again = mergesFail();
shardByRanges(testDB.e, {x: 1}, points, owners);
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.e", defragmentCollection: true}));
assert.soon(() => chunksOf(testDB.e).some((c) => c.estimatedDataSizeBytes !== undefined), () => tojson(chunksOf(testDB.e)));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.e", defragmentCollection: false}));
const left = chunksOf(testDB.e);
assert.eq(16, left.length);
assert(left.every((c) => c.estimatedDataSizeBytes === undefined), tojson(left));
assert(!("defragmentCollection" in config.collections.findOne({_id: "d.e"})));
assert.commandFailedWithCode(
    admin.runCommand({configureCollectionBalancing: "d.absent", defragmentCollection: true}), [26, 118]);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
again.off();

// A chunk that somebody splits while its move is tried again and again: the phases begin anew, and come to an end.
shardByRanges(testDB.s, {x: 1}, [{x: 0}, {x: 10}], [first, second, first]);
for (let x = -10; x < 20; x++) {
    assert.commandWorked(testDB.s.insert(x >= 0 && x < 10 ? {x: x} : {x: x, pad: pad}));
}
const busy = configureFailPoint(
    st.shard1, "failCommand", {failCommands: ["_shardsvrMoveRange"], failInternalCommands: true, errorCode: 117});
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.s", defragmentCollection: true}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
busy.wait();
assert.commandWorked(admin.runCommand({split: "d.s", middle: {x: 5}}));
busy.off();
assert.soon(() => !("defragmentCollection" in config.collections.findOne({_id: "d.s"})), () => tojson(chunksOf(testDB.s)), 90 * 1000);
assert.eq([first], chunksOf(testDB.s).map((c) => c.shard));
assert.eq(30, testDB.s.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();

// Two moves, the second possible only after the merge that follows the first: neither waits for the time of a round.
shardByRanges(testDB.w, {x: 1}, [{x: 0}, {x: 10}], [first, second, first]);
assert.commandWorked(testDB.w.insert([{x: -1}, {x: 1}, {x: 11}]));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.w", defragmentCollection: true}));
const hours = configureFailPoint(configPrimary, "overrideBalanceRoundInterval", {intervalMs: 3600 * 1000});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => chunksOf(testDB.w).length === 1 && !("defragmentCollection" in config.collections.findOne({_id: "d.w"})),
            () => tojson(chunksOf(testDB.w)), 90 * 1000);
assert.eq(3, testDB.w.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
hours.off();

// A zone that comes when the first phase has planned its merges: none goes over its edge.
shardByRanges(testDB.z, {x: 1}, [{x: 0}, {x: 10}, {x: 20}, {x: 30}, {x: 40}], [first, first, second, first, first, first]);
assert.commandWorked(testDB.z.insert([{x: -1}, {x: 1}, {x: 11}, {x: 21}, {x: 31}, {x: 41}]));
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, chunkDefragmentationThrottlingMS: 3600 * 1000}));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "d.z", defragmentCollection: true}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => "defragmentationPhase" in config.collections.findOne({_id: "d.z"}));
assert.commandWorked(admin.runCommand({addShardToZone: st.shard0.shardName, zone: "late"}));
assert.commandWorked(admin.runCommand({updateZoneKeyRange: "d.z", min: {x: 30}, max: {x: 40}, zone: "late"}));
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, chunkDefragmentationThrottlingMS: 0}));
const quick = quickRounds(configPrimary);
assert.soon(() => !("defragmentCollection" in config.collections.findOne({_id: "d.z"})), () => tojson(chunksOf(testDB.z)), 90 * 1000);
const merges = config.changelog.find({what: "merge", ns: "d.z"}).toArray();
assert.gt(merges.length, 0);
for (const {details: {merged}} of merges) {
    assert(merged.slice(1).every((c) => c.min.x !== 30 && c.min.x !== 40), tojson(merged));
}
assert.eq(6, testDB.z.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
quick.off();
st.stop();
