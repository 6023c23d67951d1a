/**
 * An array sorts by its smallest element upwards and by its largest downwards; a path may reach into arrays.
 * Fails when sorting uses another element, puts empty arrays elsewhere, or an index gives another order than a sort in memory.
 */
const coll = db.sort_arrays_and_paths;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: "a", v: [5, 1]},
    {_id: "b", v: 3},
    {_id: "c", v: [2, 9]},
    {_id: "d", v: []},
    {_id: "e", v: null},
    {_id: "f", v: [[0], 4]},
    {_id: "g"},
    {_id: "h", v: "s"},
]));

function order(sort) {
    return coll.find().sort(sort).toArray().map(doc => doc._id).join("");
}
// Undefined, which an empty array sorts as, comes before null and missing.
const upwards = "degacbfh";
const downwards = "fhcabegd";

assert.eq(upwards, order({v: 1, _id: 1}));
assert.eq(downwards, order({v: -1, _id: 1}));
assert.commandWorked(coll.createIndex({v: 1, _id: 1}));
assert.commandWorked(coll.createIndex({v: -1, _id: 1}));
assert.eq(upwards, order({v: 1, _id: 1}));
assert.eq(downwards, order({v: -1, _id: 1}));

coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [{b: 5}, {b: 2}], x: 1},
    {_id: 1, a: {b: 3}, x: 1},
    {_id: 2, a: [{c: 1}], x: 0},
    {_id: 3, a: 7, x: 0},
]));
assert.eq([2, 3, 0, 1], coll.find().sort({"a.b": 1, _id: 1}).toArray().map(doc => doc._id));
assert.eq([0, 1, 2, 3], coll.find().sort({"a.b": -1, _id: 1}).toArray().map(doc => doc._id));
assert.eq([3, 2, 1, 0], coll.find().sort({x: 1, _id: -1}).toArray().map(doc => doc._id));
assert.eq([1, 0, 3, 2], coll.find().sort({x: -1, _id: -1}).toArray().map(doc => doc._id));

// Two arrays side by side cannot both be sort keys.
assert.commandWorked(coll.insert({_id: 4, p: [1, 2], q: [3, 4]}));
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {_id: {$gte: 4}}, sort: {p: 1, q: 1}}), ErrorCodes.BadValue);
