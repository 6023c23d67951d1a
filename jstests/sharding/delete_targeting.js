/**
 * Deletes by key, of one document anywhere, and of all that match, each on the shards that own them.
 * It fails if a delete of one removes one on each shard, or a broadcast delete leaves a shard out.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "delete_targeting", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: "i" + x, x: x, g: Math.abs(x) % 3}));
}
function remove(deletes, more) {
    return testDB.runCommand(Object.assign({delete: "c", deletes: deletes}, more));
}

assert.eq(1, assert.commandWorked(remove([{q: {x: 3}, limit: 1}])).n);
assert.eq(1, assert.commandWorked(remove([{q: {x: 4}, limit: 0}])).n);
assert.eq(0, assert.commandWorked(remove([{q: {x: 4}, limit: 1}])).n);
assert.eq([10, 8], [heldBy(coll, first), heldBy(coll, second)]);

// One without its key, by _id and by a filter that many match.
assert.eq(1, assert.commandWorked(remove([{q: {_id: "i-5"}, limit: 1}])).n);
assert.eq(1, assert.commandWorked(remove([{q: {g: 0}, limit: 1}])).n);
assert.eq(16, coll.find().itcount());
assert.eq(0, assert.commandWorked(remove([{q: {g: 77}, limit: 1}])).n);

// Several statements, each with its own count in the sum.
const left = coll.find({g: 1}).itcount();
assert.gt(left, 2);
let reply = assert.commandWorked(remove([{q: {x: -10}, limit: 1}, {q: {g: 1}, limit: 0}, {q: {x: -10}, limit: 1}]));
assert.eq(0, coll.find({$or: [{g: 1}, {x: -10}]}).itcount());

// Errors keep their index.
reply = remove([{q: {x: 1}, limit: 1}, {q: {x: {$bad: 1}}, limit: 1}, {q: {x: 2}, limit: 1}], {ordered: false});
assert.eq([1], reply.writeErrors.map((e) => e.index));
assert.eq(2, reply.writeErrors[0].code);
assert.commandFailedWithCode(remove([{q: {x: 1}, limit: 5}]), 9);
assert.commandFailedWithCode(remove([{q: {x: 1}}]), 40414);
assert.commandFailedWithCode(remove([]), 16);

// Everything.
const all = coll.find().itcount();
assert.eq(all, assert.commandWorked(coll.deleteMany({})).deletedCount);
assert.eq([0, 0], [heldBy(coll, first), heldBy(coll, second)]);
assert.commandWorked(testDB.dropDatabase());
