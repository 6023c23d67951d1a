/**
 * $size and $all speak of arrays as wholes.
 * Fails when $size counts a scalar, or $all asks for order, for one element only, or matches with an empty list.
 */
const coll = db.find_size_and_all;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: []},
    {_id: 1, a: [1]},
    {_id: 2, a: [1, 2]},
    {_id: 3, a: [2, 1, 3]},
    {_id: 4, a: 1},
    {_id: 5, a: [[1, 2], 7]},
    {_id: 6, a: "abc"},
    {_id: 7},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0], ids({a: {$size: 0}}));
assert.eq([1], ids({a: {$size: NumberLong(1)}}));
assert.eq([2, 5], ids({a: {$size: 2.0}}));
assert.eq([5], ids({"a.0": {$size: 2}}));
assert.eq([0, 2, 3, 4, 5, 6, 7], ids({a: {$not: {$size: 1}}}));

assert.eq([2, 3], ids({a: {$all: [1, 2]}}));
assert.eq([2, 3], ids({a: {$all: [2, 1, 1]}}));
assert.eq([1, 2, 3, 4], ids({a: {$all: [1]}}));
assert.eq([], ids({a: {$all: []}}));
assert.eq([2, 5], ids({a: {$all: [[1, 2]]}}));
assert.eq([6], ids({a: {$all: [/b/, "abc"]}}));
assert.eq([7], ids({a: {$all: [null]}}));

const name = coll.getName();
for (const size of [-1, 1.5, "1", null, [1]]) {
    assert.commandFailedWithCode(db.runCommand({find: name, filter: {a: {$size: size}}}),
                                 [ErrorCodes.BadValue, ErrorCodes.FailedToParse],
                                 () => tojson(size));
}
assert.commandFailedWithCode(db.runCommand({find: name, filter: {a: {$all: 1}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {a: {$all: [{$gt: 1}]}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {a: {$all: [1, {$elemMatch: {x: 1}}]}}}), ErrorCodes.BadValue);
