/**
 * The comparison operators are what most queries are made of.
 * Fails when $gt, $gte, $lt, $lte, $ne or $eq includes or leaves out a bound, or matches a value of another type.
 */
const coll = db.find_comparison_operators;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: 1},
    {_id: 1, a: 2},
    {_id: 2, a: 3},
    {_id: 3, a: "2"},
    {_id: 4, a: null},
    {_id: 5},
    {_id: 6, a: [1, 3]},
    {_id: 7, a: NaN},
    {_id: 8, a: new Date(2)},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([1], ids({a: 2}));
assert.eq([1], ids({a: {$eq: 2}}));
assert.eq([0, 2, 3, 4, 5, 6, 7, 8], ids({a: {$ne: 2}}));
assert.eq([2, 6], ids({a: {$gt: 2}}));
assert.eq([1, 2, 6], ids({a: {$gte: 2}}));
assert.eq([0, 6], ids({a: {$lt: 2}}));
assert.eq([0, 1, 6], ids({a: {$lte: 2}}));

// Each bound of a range may be met by another element of an array; $elemMatch asks one element for both.
assert.eq([1, 6], ids({a: {$gt: 1, $lt: 3}}));
assert.eq([], ids({a: {$elemMatch: {$gt: 1, $lt: 3}}}));

// A comparison stays within the type of its operand.
assert.eq([3], ids({a: {$gte: ""}}));
assert.eq([8], ids({a: {$gte: new Date(0)}}));
assert.eq([4, 5], ids({a: {$gte: null}}));
assert.eq([], ids({a: {$gt: null}}));

// NaN equals itself, is within $gte and $lte of itself, and is less than no number.
assert.eq([7], ids({a: NaN}));
assert.eq([7], ids({a: {$gte: NaN}}));
assert.eq([7], ids({a: {$lte: NaN}}));
assert.eq([], ids({a: {$lt: NaN}}));
assert.eq([], ids({a: {$gt: NaN}}));

// MinKey and MaxKey bound all types.
assert.eq(9, ids({a: {$gt: MinKey}}).length);
assert.eq(9, ids({a: {$lt: MaxKey}}).length);
assert.eq([], ids({a: {$lt: MinKey}}));

// An array is another value than its elements, also for one of nothing but an extreme, and by an index as without.
const extremes = db.find_comparison_operators_extremes;
extremes.drop();
assert.commandWorked(extremes.insert([{_id: 1, a: [MinKey]}, {_id: 2, a: [MaxKey]}, {_id: 3, a: [1]}, {_id: 4, a: MinKey}, {_id: 5, a: MaxKey}]));
assert.commandWorked(extremes.createIndex({a: 1}));
const compared = [{$gt: MinKey}, {$gte: MinKey}, {$lt: MaxKey}, {$lte: MaxKey}, {$lte: MinKey}, {$gte: MaxKey}, {$lt: MinKey}, {$gt: MaxKey}];
const by = (hint) => compared.map((a) => extremes.find({a}).hint(hint).sort({_id: 1}).toArray().map((d) => d._id));
assert.eq([[1, 2, 3, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 4], [2, 5], [], []], by({$natural: 1}));
assert.eq(by({$natural: 1}), by({a: 1}));
extremes.drop();

