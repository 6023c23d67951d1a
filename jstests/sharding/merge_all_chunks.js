/**
 * mergeAllChunksOnShard joins every run of neighbouring chunks of a shard that never moved, or not lately, and are not
 * jumbo.
 * It fails if runs are joined over another shard's chunk, a jumbo chunk or one that moved lately is swallowed, or another
 * shard's chunks change.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, configConnection, freshCollection, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const points = [];
for (let x = 0; x < 10; x++) {
    points.push({x: x * 10});
}
// Those that are to be on the first shard are moved there, so that all have moved lately.
const owners = [first, first, first, second, second, first, first, second, first, first, first];
const coll = freshCollection(db, "merge_all_chunks", {x: 1}, points, owners);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (const chunk of chunksOf(coll).filter((c) => c.shard === first)) {
    for (const shard of [second, first]) {
        moveRange(coll, {min: chunk.min, max: chunk.max}, shard);
    }
}
for (let x = -10; x < 110; x++) {
    assert.commandWorked(coll.insert({x: x}));
}

// A chunk that came within the snapshot window must not lose its history: make all of them old.
const config = configConnection(db).getDB("config");
function age(filter) {
    for (const chunk of config.chunks.find(Object.assign({uuid: chunksOf(coll)[0].uuid}, filter)).toArray()) {
        const since = Timestamp(1000, 1);
        assert.commandWorked(config.chunks.update({_id: chunk._id}, {
            $set: {onCurrentShardSince: since, history: [{validAfter: since, shard: chunk.shard}]},
        }));
    }
}
const layout = () => chunksOf(coll).map((c) => [c.min.x, c.shard]);
const young = chunksOf(coll);
for (const shard of [first, second]) {
    assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: shard}));
}
assert.eq(young, chunksOf(coll), "chunks that came lately stay as they are");
age({});
// One chunk of the last run is jumbo: it stays, and parts the run.
assert.commandWorked(config.chunks.update({uuid: chunksOf(coll)[0].uuid, min: {x: 80}}, {$set: {jumbo: true}}));

assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: first}));
assert.eq([
    [MinKey, first], [20, second], [30, second], [40, first], [60, second], [70, first], [80, first], [90, first],
], layout());
assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: second}));
assert.eq([[MinKey, first], [20, second], [40, first], [60, second], [70, first], [80, first], [90, first]], layout());
assert.eq(120, coll.find().itcount());
assert.eq(true, chunksOf(coll)[5].jumbo);

// Chunks that were split and never moved are joined at once.
const still = testDB.still;
assert.commandWorked(db.adminCommand({shardCollection: still.getFullName(), key: {x: 1}}));
for (let x = 0; x < 5; x++) {
    assert.commandWorked(db.adminCommand({split: still.getFullName(), middle: {x: x}}));
}
assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: still.getFullName(), shard: first}));
assert.eq(1, chunksOf(still).length);

// Nothing left to join is no error.
const before = chunksOf(coll);
assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: second}));
assert.eq(before, chunksOf(coll));

// A limit on how many chunks are joined.
for (const x of [22, 24, 26, 28]) {
    assert.commandWorked(db.adminCommand({split: ns, middle: {x: x}}));
}
age({shard: second});
assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: second, maxNumberOfChunksToMerge: 2}));
assert.eq(before.length + 3, chunksOf(coll).length);
assert.commandWorked(db.adminCommand({mergeAllChunksOnShard: ns, shard: second}));
assert.eq(before.length, chunksOf(coll).length);

// Errors.
assert.commandFailedWithCode(db.adminCommand({mergeAllChunksOnShard: ns, shard: "no such shard"}), 70);
assert.commandFailedWithCode(db.adminCommand({mergeAllChunksOnShard: ns}), 40414);
assert.commandFailedWithCode(db.adminCommand({mergeAllChunksOnShard: ns, shard: 5}), 14);
assert.commandFailedWithCode(db.adminCommand({mergeAllChunksOnShard: ns, shard: second, ofBalancer: true}), 40415);
for (const field of ["maxNumberOfChunksToMerge", "maxTimeProcessingChunksMS"]) {
    assert.commandFailedWithCode(db.adminCommand({mergeAllChunksOnShard: ns, shard: second, [field]: "x"}), 14);
}
assert.commandWorked(testDB.plain.insert({x: 1}));
assert.commandFailedWithCode(
    db.adminCommand({mergeAllChunksOnShard: testDB.plain.getFullName(), shard: first}), 118);
assert.commandWorked(testDB.dropDatabase());
