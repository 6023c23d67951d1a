/**
 * $and, $or, $nor and $not combine conditions, and a condition with a wrong shape must be refused rather than ignored.
 * Fails when one of them is evaluated wrongly, or an empty or malformed list is taken.
 */
const coll = db.find_logical_operators;
coll.drop();
for (let i = 0; i < 12; i++) {
    assert.commandWorked(coll.insert({_id: i, two: i % 2, three: i % 3}));
}
assert.commandWorked(coll.insert({_id: 12}));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 6], ids({$and: [{two: 0}, {three: 0}]}));
assert.eq([0, 2, 3, 4, 6, 8, 9, 10], ids({$or: [{two: 0}, {three: 0}]}));
assert.eq([1, 5, 7, 11, 12], ids({$nor: [{two: 0}, {three: 0}]}));
assert.eq([1, 3, 5, 7, 9, 11, 12], ids({two: {$not: {$eq: 0}}}));
assert.eq([12], ids({two: {$not: {$gte: 0}}}));
assert.eq([1, 3, 5, 7, 9, 11, 12], ids({two: {$not: {$in: [0, 5]}}}));
assert.eq([2, 4, 8, 10], ids({two: 0, $nor: [{three: 0}]}));
assert.eq([0, 3, 4], ids({$or: [{$and: [{two: 0}, {_id: {$in: [0, 4]}}]}, {_id: 3}]}));
assert.eq([5, 11], ids({$and: [{two: 1}, {$or: [{three: 2}, {_id: 12}]}]}));

// Two conditions on one field, written apart.
assert.eq([4, 5, 6], ids({$and: [{_id: {$gt: 3}}, {_id: {$lt: 7}}]}));

for (const filter of [
         {$and: []},
         {$or: []},
         {$nor: []},
         {$and: {}},
         {$or: 1},
         {$nor: [1]},
         {two: {$not: 1}},
         {two: {$not: {}}},
         {$not: {two: 1}},
         {$unheardOf: [1]},
         {two: {$unheardOf: 1}},
     ]) {
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: filter}), ErrorCodes.BadValue, () => tojson(filter));
}
