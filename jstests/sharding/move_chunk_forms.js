/**
 * moveChunk names its chunk by a document within it or by its bounds, and has options of several ages.
 * It fails if one of the forms is refused, finds another chunk, or reports success without having moved anything.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshCollection, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "move_chunk_forms", {x: 1}, [{x: 0}, {x: 10}], [first, first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -5; x < 15; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
function move(fields, owners) {
    const reply = assert.commandWorked(db.adminCommand(Object.assign({moveChunk: ns}, fields)));
    assert.gte(reply.millis, 0, tojson(reply));
    assert.eq(owners, chunksOf(coll).map((c) => c.shard), tojson(fields));
    assert.eq(20, coll.find().itcount());
}

move({find: {x: 5}, to: second, _waitForDelete: true}, [first, second, first]);
assert.eq([10, 10], [heldBy(coll, first), heldBy(coll, second)]);
move({bounds: [{x: 0}, {x: 10}], to: first, waitForDelete: true}, [first, first, first]);
move({find: {x: 0}, to: second, waitForDelete: true, _secondaryThrottle: true, writeConcern: {w: 1}}, [first, second, first]);
move({bounds: [{x: 10}, {x: MaxKey}], to: second, waitForDelete: true, secondaryThrottle: false}, [first, second, second]);
move({find: {x: -100, other: 7}, to: second, waitForDelete: true}, [second, second, second]);
assert.eq([0, 20], [heldBy(coll, first), heldBy(coll, second)]);

// To where it is: nothing to do.
move({find: {x: 5}, to: second}, [second, second, second]);

// The old spelling, and forcing what needs no force.
assert.commandWorked(db.adminCommand({movechunk: ns, find: {x: -1}, to: first, waitForDelete: true}));
move({find: {x: 5}, to: first, forceJumbo: true, waitForDelete: true}, [first, first, second]);

// By the hashed key's own values: a document is hashed, bounds are hashes.
const hashed = testDB.h;
assert.commandWorked(db.adminCommand({shardCollection: hashed.getFullName(), key: {x: "hashed"}}));
const owner = () => chunksOf(hashed).find((c) => bsonWoCompare(c.min, {x: convertShardKeyToHashed(77)}) <= 0 &&
                                                  bsonWoCompare(c.max, {x: convertShardKeyToHashed(77)}) > 0).shard;
const other = owner() === first ? second : first;
assert.commandWorked(db.adminCommand({moveChunk: hashed.getFullName(), find: {x: 77}, to: other, waitForDelete: true}));
assert.eq(other, owner());
const chunk = chunksOf(hashed)[0];
const target = chunk.shard === first ? second : first;
assert.commandWorked(db.adminCommand(
    {moveChunk: hashed.getFullName(), bounds: [chunk.min, chunk.max], to: target, waitForDelete: true}));
assert.eq(target, chunksOf(hashed)[0].shard);
assert.commandWorked(testDB.dropDatabase());
