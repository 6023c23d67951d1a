/**
 * An equality with null is met by null and by no value at all, which applications use to ask for either.
 * Fails when {a: null} matches undefined elsewhere than the manual says, or $exists and $type confuse null with a missing field.
 */
const coll = db.find_null_and_missing;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: null},
    {_id: 1},
    {_id: 2, a: 1},
    {_id: 3, a: []},
    {_id: 4, a: [null]},
    {_id: 5, a: [{}]},
    {_id: 6, a: {b: null}},
    {_id: 7, a: [{b: 1}, {}]},
    {_id: 8, a: {b: 1}},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 1, 4], ids({a: null}));
assert.eq([0, 1, 4], ids({a: {$eq: null}}));
assert.eq([0, 1, 4], ids({a: {$in: [null]}}));
assert.eq([2, 3, 5, 6, 7, 8], ids({a: {$ne: null}}));
assert.eq([1], ids({a: {$exists: false}}));
assert.eq([0, 2, 3, 4, 5, 6, 7, 8], ids({a: {$exists: true}}));
assert.eq([0, 4], ids({a: {$type: "null"}}));

// A path through a scalar or an empty array finds nothing; through an array of documents it is missing where one element lacks it.
assert.eq([0, 1, 2, 5, 6, 7], ids({"a.b": null}));
assert.eq([3, 4, 8], ids({"a.b": {$ne: null}}));
assert.eq([6, 7, 8], ids({"a.b": {$exists: true}}));
assert.eq([0, 1, 2, 3, 4, 5], ids({"a.b": {$exists: false}}));

// The same answers come out of an index.
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({"a.b": 1}));
assert.eq([0, 1, 4], coll.find({a: null}).hint({a: 1}).toArray().map(doc => doc._id).sort());
assert.eq([0, 1, 2, 5, 6, 7], coll.find({"a.b": null}).hint({"a.b": 1}).toArray().map(doc => doc._id).sort());
assert.eq([1], coll.find({a: {$exists: false}}).hint({a: 1}).toArray().map(doc => doc._id));
