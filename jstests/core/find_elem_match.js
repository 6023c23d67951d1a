/**
 * $elemMatch asks one element to meet all conditions, which dotted paths do not.
 * Fails when the conditions of $elemMatch are met by different elements, or it looks at a field that is not an array.
 */
const coll = db.find_elem_match;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, items: [{sku: "a", n: 1}, {sku: "b", n: 9}]},
    {_id: 1, items: [{sku: "a", n: 9}, {sku: "b", n: 1}]},
    {_id: 2, items: {sku: "a", n: 9}},
    {_id: 3, items: []},
    {_id: 4, items: [1, 5, 12]},
    {_id: 5, items: [[{sku: "a", n: 9}]]},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 1, 2], ids({"items.sku": "a", "items.n": {$gt: 5}}));
assert.eq([1], ids({items: {$elemMatch: {sku: "a", n: {$gt: 5}}}}));
assert.eq([0, 1], ids({items: {$elemMatch: {sku: "b"}}}));
assert.eq([4], ids({items: {$elemMatch: {$gt: 4, $lt: 6}}}));
assert.eq([], ids({items: {$elemMatch: {$gt: 5, $lt: 12}}}));
assert.eq([0, 1, 2, 3, 5], ids({items: {$not: {$elemMatch: {$gt: 4, $lt: 6}}}}));
assert.eq([5], ids({items: {$elemMatch: {$elemMatch: {sku: "a", n: 9}}}}));
assert.eq([0, 1], ids({items: {$elemMatch: {$or: [{sku: "z"}, {n: 9}]}}}));
assert.eq([1], ids({items: {$all: [{$elemMatch: {sku: "a", n: 9}}, {$elemMatch: {sku: "b", n: 1}}]}}));
assert.eq([0], ids({items: {$all: [{$elemMatch: {sku: "a", n: 1}}]}}));

// An empty $elemMatch is met by any element that is a document or an array.
assert.eq([0, 1, 5], ids({items: {$elemMatch: {}}}));

assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {items: {$elemMatch: 1}}}), ErrorCodes.BadValue);
