/**
 * $expr lets a query compare fields with each other, in the order of all types rather than within one.
 * Fails when an expression in a query sees another document, another type order or no variables, or its errors pass.
 */
const coll = db.find_expr;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, spent: 10, budget: 20},
    {_id: 1, spent: 30, budget: 20},
    {_id: 2, spent: "x", budget: 20},
    {_id: 3, budget: 20},
    {_id: 4, spent: [5], budget: 20},
    {_id: 5, spent: 20, budget: NumberLong(20)},
]));

function ids(filter, more) {
    const reply = db.runCommand(Object.assign({find: coll.getName(), filter: filter, sort: {_id: 1}}, more || {}));
    return assert.commandWorked(reply).cursor.firstBatch.map(doc => doc._id);
}

// A string and an array are greater than any number, a missing field is less.
assert.eq([1, 2, 4], ids({$expr: {$gt: ["$spent", "$budget"]}}));
assert.eq([5], ids({$expr: {$eq: ["$spent", "$budget"]}}));
assert.eq([0, 3], ids({$expr: {$lt: ["$spent", "$budget"]}}));
assert.eq([1], ids({budget: 20, $expr: {$gt: ["$spent", "$budget"]}, spent: 30}));
assert.eq([4], ids({$expr: {$isArray: "$spent"}}));
assert.eq([1, 5], ids({$expr: {$and: [{$isNumber: "$spent"}, {$gte: ["$spent", "$$least"]}]}}, {let: {least: 20}}));
assert.eq([0, 1, 2, 3, 4, 5], ids({$expr: true}));
assert.eq([], ids({$expr: null}));
assert.eq([0, 1, 2, 4, 5], ids({$expr: "$spent"}));
assert.eq([3], ids({$or: [{$expr: {$eq: [{$type: "$spent"}, "missing"]}}, {_id: 77}]}));

const name = coll.getName();
assert.commandFailedWithCode(db.runCommand({find: name, filter: {$expr: {$unheardOf: 1}}}), 168);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {$expr: "$$nope"}}), 17276);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {$expr: {$divide: ["$budget", 0]}}}), [2, 16608, ErrorCodes.BadValue]);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {spent: {$expr: 1}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {spent: {$elemMatch: {$expr: true}}}}), ErrorCodes.BadValue);
