/**
 * A number within a path is an array index and a field name at once.
 * Fails when "a.0" reaches only one of the two, or counts through a nested array.
 */
const coll = db.find_numeric_path_components;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [5, 6]},
    {_id: 1, a: {"0": 5}},
    {_id: 2, a: [{"0": 5}]},
    {_id: 3, a: [[5, 7]]},
    {_id: 4, a: [{b: [1, 2]}, {b: [3, 4]}]},
    {_id: 5, a: 5},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

// An array that an index leads to is a value, whose elements are not looked into.
assert.eq([0, 1, 2], ids({"a.0": 5}));
assert.eq([3], ids({"a.0": [5, 7]}));
assert.eq([0], ids({"a.1": 6}));
assert.eq([3], ids({"a.0.1": 7}));
assert.eq([2, 3], ids({"a.0.0": 5}));
assert.eq([4], ids({"a.0.b.1": 2}));
assert.eq([], ids({"a.1.b.1": 2}));
assert.eq([4], ids({"a.1.b": 3}));
assert.eq([4], ids({"a.b.0": 3}));
assert.eq([4], ids({"a.b.1": {$in: [4]}}));
assert.eq([0, 1, 2, 3, 4], ids({"a.0": {$exists: true}}));
// Leading zeros make a name, not an index.
assert.eq([], ids({"a.00": 5}));

// An index over the numbered path gives the same.
assert.commandWorked(coll.createIndex({"a.1": 1}));
assert.eq([0], coll.find({"a.1": 6}).hint({"a.1": 1}).toArray().map(doc => doc._id));

// An array at a position is entered as any other.
assert.commandWorked(coll.insert({_id: 9, nested: [[{b: 1}, {b: 2}], 7]}));
assert.eq([9], ids({"nested.0.b": 1}));
assert.eq([9], ids({"nested.0.b": {$exists: true}}));
assert.eq([9], ids({"nested.0.1.b": 2}));
assert.eq([], ids({"nested.1.b": 1}));
