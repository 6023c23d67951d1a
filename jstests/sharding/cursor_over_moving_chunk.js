/**
 * A cursor opened before a range moves must still return each of its documents exactly once, wherever they lie now.
 * It fails if a shard's cursor takes up a newer ownership filter, or if ranges are deleted below an open cursor.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, hastenRangeDeletion, heldBy, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const restore = hastenRangeDeletion(db);
const coll = freshCollection(db, "cursor_over_moving_chunk", {x: 1}, [{x: 100}], [first, second]);
const testDB = coll.getDB();
const documents = [];
for (let x = 0; x < 200; x++) {
    documents.push({_id: x, x: x, pad: "p".repeat(100)});
}
assert.commandWorked(coll.insert(documents));

function everyOnce(cursor, already) {
    const ids = already.concat(cursor.toArray().map((d) => d._id));
    assert.eq(200, ids.length);
    assert.eq(200, new Set(ids).size);
}
const take = (cursor, n) => Array.from({length: n}, () => cursor.next()._id);

// Unsorted and sorted, the range moves after some batches; nobody waits for its deletion, which the cursor holds up.
for (const sort of [{}, {x: 1}, {x: -1}]) {
    const cursor = coll.find().sort(sort).batchSize(5);
    const already = take(cursor, 12);
    assert.commandWorked(db.adminCommand(
        {moveRange: coll.getFullName(), min: {x: 100}, max: {x: MaxKey}, toShard: first}));
    sleep(200);
    assert.eq(100, heldBy(coll, second), "the range was deleted below an open cursor");
    everyOnce(cursor, already);
    // Back again: the shard that gave the range away must have deleted it before it receives it.
    moveRange(coll, {min: {x: 100}, max: {x: MaxKey}}, second);
}

// A pipeline's cursor, and a new one beside it.
const cursor = coll.aggregate([{$match: {x: {$gte: 0}}}], {cursor: {batchSize: 5}});
const already = take(cursor, 7);
assert.commandWorked(db.adminCommand(
    {moveRange: coll.getFullName(), min: {x: MinKey}, max: {x: 100}, toShard: second}));
assert.eq(200, coll.find().itcount());
everyOnce(cursor, already);

// Documents deleted and inserted after the move are what the new owner says.
assert.commandWorked(coll.deleteMany({x: {$lt: 50}}));
assert.commandWorked(coll.insert({_id: 7, x: 7}));
assert.eq(151, coll.find().itcount());
assert.eq(1, coll.find({x: 7}).itcount());
assert.commandWorked(testDB.dropDatabase());
restore();
