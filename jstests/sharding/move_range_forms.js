/**
 * moveRange moves exactly the range it is given, splitting the chunk it lies in; what is left stays where it was.
 * It fails if the leftovers move along, get no chunk of their own, or one missing bound is not filled in from the chunk.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshDatabase, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "move_range_forms", first);
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
for (let x = 0; x < 100; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
function move(fields) {
    assert.commandWorked(db.adminCommand(Object.assign({moveRange: ns, waitForDelete: true}, fields)));
}
const layout = () => chunksOf(coll).map((c) => [c.min.x, c.shard]);

// Out of the middle: three chunks of one.
move({min: {x: 20}, max: {x: 40}, toShard: second});
assert.eq([[MinKey, first], [20, second], [40, first]], layout());
assert.eq([80, 20], [heldBy(coll, first), heldBy(coll, second)]);
const versions = chunksOf(coll).map((c) => c.lastmod);
assert.eq(Timestamp(2, 0), versions[1]);
assert.eq([2, 2], [versions[0].getTime(), versions[2].getTime()]);

// From the beginning and from the end of a chunk.
move({min: {x: 40}, max: {x: 50}, toShard: second});
assert.eq([[MinKey, first], [20, second], [40, second], [50, first]], layout());
move({min: {x: 90}, max: {x: MaxKey}, toShard: second});
assert.eq([[MinKey, first], [20, second], [40, second], [50, first], [90, second]], layout());

// One bound: the other is the chunk's, as the whole is small.
move({min: {x: 60}, toShard: second});
assert.eq([[MinKey, first], [20, second], [40, second], [50, first], [60, second], [90, second]], layout());
move({max: {x: 20}, toShard: second});
assert.eq([50], chunksOf(coll).filter((c) => c.shard === first).map((c) => c.min.x));
assert.eq([10, 90], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq(100, coll.find().itcount());
assert.eq(100, new Set(coll.find().toArray().map((d) => d._id)).size);

// To where it is.
move({min: {x: 60}, max: {x: 70}, toShard: second});
assert.eq(90, heldBy(coll, second));

// A chunk that ends in the middle of another one is covered by nobody.
assert.commandFailed(db.adminCommand({moveRange: ns, min: {x: 30}, max: {x: 45}, toShard: first}));
assert.commandFailed(db.adminCommand({moveRange: ns, min: {x: 30}, max: {x: 25}, toShard: first}));

// Neighbours always meet: no gap, no overlap.
const chunks = chunksOf(coll);
for (let i = 1; i < chunks.length; i++) {
    assert.eq(chunks[i - 1].max, chunks[i].min);
}
assert.eq({x: MinKey}, chunks[0].min);
assert.eq({x: MaxKey}, chunks[chunks.length - 1].max);
assert.commandWorked(testDB.dropDatabase());
