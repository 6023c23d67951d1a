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

// An array at a position is one value, also where an index holds its elements.
// (One of the documents is ambiguous to an index.)
assert.commandWorked(coll.remove({_id: 2}));
assert.commandWorked(coll.createIndex({"a.0": 1}));
for (const predicate of [5, 7, [5, 7], {$gt: 4}, {$in: [5, 9]}, {$ne: 5}, {$nin: [5, 7]}, {$not: {$gt: 4}}, {$exists: true}, null, {$type: "array"}]) {
    const by = hint => coll.find({"a.0": predicate}).hint(hint).toArray().map(doc => doc._id).sort();
    assert.eq(by({$natural: 1}), by({"a.0": 1}), tojson(predicate));
    assert.eq(by({$natural: 1}).length, coll.find({"a.0": predicate}).hint({"a.0": 1}).count(), tojson(predicate));
}

// A place at a position is in an index on places.
const places = db.find_numeric_path_places;
places.drop();
assert.commandWorked(places.createIndex({"at.0": "2dsphere"}));
assert.commandWorked(places.insert([0, 1].map(i => ({_id: i, at: [{type: "Point", coordinates: [i, 0]}, "named"]}))));
assert.eq([0, 1], places.find({"at.0": {$near: {$geometry: {type: "Point", coordinates: [0, 0]}}}}).toArray().map(doc => doc._id));
assert.eq([1], places.find({"at.0": {$geoWithin: {$centerSphere: [[1, 0], 0.001]}}}).toArray().map(doc => doc._id));
places.drop();
