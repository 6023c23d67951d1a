/**
 * A hashed index finds equal values, of whatever numeric type, and nothing by range.
 * Fails when an equality through the hash misses a document, an array is taken, or a range goes through it.
 */
import {planIndexes} from "jstests/libs/plan_stages.js";

const coll = db.index_hashed;
coll.drop();
assert.commandWorked(coll.createIndex({h: "hashed"}));
assert.commandWorked(coll.createIndex({c: 1, k: "hashed"}));
assert.commandWorked(coll.insert([
    {_id: 0, h: 5, c: 1, k: "x"},
    {_id: 1, h: NumberLong(5), c: 1, k: "y"},
    {_id: 2, h: 5.5, c: 2, k: "x"},
    {_id: 3, h: "5"},
    {_id: 4, h: null},
    {_id: 5},
    {_id: 6, h: {x: 1}},
    {_id: 7, h: new Date(5)},
]));

function ids(filter, hint) {
    return coll.find(filter).hint(hint || {h: "hashed"}).toArray().map(doc => doc._id).sort();
}
assert.eq([0, 1], ids({h: 5}));
assert.eq([0, 1], ids({h: NumberDecimal("5")}));
assert.eq([2], ids({h: 5.5}));
assert.eq([3], ids({h: "5"}));
assert.eq([4, 5], ids({h: null}));
assert.eq([6], ids({h: {x: 1}}));
assert.eq([0, 1, 3], ids({h: {$in: [5, "5"]}}));
assert.eq([0], ids({c: 1, k: "x"}, {c: 1, k: "hashed"}));
assert.eq([0, 1], ids({c: {$lte: 1}}, {c: 1, k: "hashed"}));

assert.eq(["h_hashed"], planIndexes(coll.find({h: 5}).explain()));
assert.eq([], planIndexes(coll.find({h: {$gt: 4}}).explain()));

// An array cannot be hashed.
assert.commandFailedWithCode(coll.insert({_id: 8, h: [1]}), 16766);
assert.commandFailedWithCode(coll.update({_id: 0}, {$set: {h: [1]}}), 16766);
assert.commandFailedWithCode(coll.createIndex({x: "hashed", y: "hashed"}), [31303, ErrorCodes.CannotCreateIndex]);
assert.eq(8, coll.find().itcount());

// Nor may another field of such an index hold one.
const compound = db.index_hashed_compound;
compound.drop();
assert.commandWorked(compound.createIndex({a: 1, h: "hashed"}));
assert.commandFailedWithCode(compound.insert({a: [1], h: 1}), 16766);
assert.commandWorked(compound.insert({a: 1, h: 1}));
