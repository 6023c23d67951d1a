/**
 * An equality against an array field means the whole array or any of its elements.
 * Fails when a match of an array ignores order, looks two levels deep, or misses the element that is itself an array.
 */
const coll = db.find_array_equality;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [1, 2]},
    {_id: 1, a: [2, 1]},
    {_id: 2, a: [[1, 2], 3]},
    {_id: 3, a: 1},
    {_id: 4, a: []},
    {_id: 5, a: [[]]},
    {_id: 6, a: {b: 1, c: 2}},
    {_id: 7, a: [{c: 2, b: 1}]},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 1, 3], ids({a: 1}));
assert.eq([0, 2], ids({a: [1, 2]}));
assert.eq([1], ids({a: [2, 1]}));
assert.eq([4, 5], ids({a: []}));
assert.eq([5], ids({a: [[]]}));
assert.eq([2], ids({a: 3}));

// Embedded documents are equal when their fields are, in this order.
assert.eq([6], ids({a: {b: 1, c: 2}}));
assert.eq([7], ids({a: {c: 2, b: 1}}));
assert.eq([], ids({a: {b: 1}}));
assert.eq([6, 7], ids({"a.b": 1}));

// Ranges over whole arrays compare element by element.
assert.eq([0, 1, 2, 5, 7], ids({a: {$gte: [1, 2]}}));
assert.eq([4, 5], ids({a: {$lt: [1]}}));

// $in takes the elements and the whole too.
assert.eq([0, 1, 2, 3], ids({a: {$in: [1, 3]}}));
assert.eq([0, 2, 4, 5], ids({a: {$in: [[1, 2], []]}}));
assert.eq([6, 7], ids({a: {$nin: [1, 3, [1, 2], [2, 1], []]}}));
