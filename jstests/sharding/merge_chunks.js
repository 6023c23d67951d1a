/**
 * Neighbouring chunks of one shard can become one; anything else would make routing wrong and is refused.
 * It fails if chunks of two shards are merged, a range that cuts a chunk is accepted, or documents change.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshCollection, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(
    db, "merge_chunks", {x: 1}, [{x: 0}, {x: 10}, {x: 20}, {x: 30}, {x: 40}],
    [first, first, first, second, second, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 50; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
const merge = (min, max) => db.adminCommand({mergeChunks: ns, bounds: [{x: min}, {x: max}]});
const layout = () => chunksOf(coll).map((c) => [c.min.x, c.shard]);
const before = chunksOf(coll);

// Refused: over two shards, cutting a chunk at its beginning or end, a single chunk.
assert.commandFailedWithCode(merge(10, 30), 20);
assert.commandFailedWithCode(merge(5, 20), 20);
assert.commandFailedWithCode(merge(0, 15), 20);
assert.commandFailedWithCode(merge(0, 10), 20);
assert.commandFailed(merge(20, 0));
assert.commandFailed(db.adminCommand({mergeChunks: ns, bounds: [{x: 0}]}));
assert.commandFailed(db.adminCommand({mergeChunks: ns, bounds: [{y: 0}, {y: 20}]}));
assert.commandFailed(db.adminCommand({mergeChunks: ns}));
assert.commandFailedWithCode(
    db.adminCommand({mergeChunks: `${testDB.getName()}.plain`, bounds: [{x: 0}, {x: 1}]}), [26, 118]);
assert.eq(before, chunksOf(coll));

// Two, and all up to the edge.
assert.commandWorked(merge(0, 20));
assert.eq([[MinKey, first], [0, first], [20, second], [30, second], [40, first]], layout());
assert.commandWorked(merge(MinKey, 20));
assert.commandWorked(merge(20, 40));
assert.eq([[MinKey, first], [20, second], [40, first]], layout());
assert.eq(60, coll.find().itcount());
assert.eq(20, coll.find({x: {$gte: 20, $lt: 40}}).itcount());

// The merged chunk's version is newer than all before, and its history begins anew with a single owner.
const merged = chunksOf(coll)[1];
assert(chunksOf(coll).every((c) => c.lastmod === merged.lastmod || bsonWoCompare({v: c.lastmod}, {v: merged.lastmod}) <= 0));
assert.eq([second], merged.history.map((h) => h.shard));
assert(!merged.jumbo);

// Merging again after moving together.
moveRange(coll, {min: {x: 20}, max: {x: 40}}, first);
assert.commandWorked(merge(MinKey, MaxKey));
assert.eq([[MinKey, first]], layout());
assert.eq(60, coll.find().itcount());
assert.commandFailedWithCode(merge(MinKey, MaxKey), 20);
assert.commandWorked(testDB.dropDatabase());
