/**
 * Applications make their indexes whenever they start, and may write a partial index's filter in another order.
 * Fails if the order of the parts of $and or $or makes another index of it, or if another filter does not.
 */
const coll = db.partial_index_again;
coll.drop();
assert.commandWorked(coll.insert({a: 1, b: 2}));
const made = filter => db.runCommand({createIndexes: coll.getName(), indexes: [{key: {k: 1}, name: "k", partialFilterExpression: filter}]});
assert.commandWorked(made({$and: [{a: 1}, {$or: [{b: 2}, {c: 3}]}]}));
const before = coll.getIndexes().length;
const again = assert.commandWorked(made({$and: [{$or: [{c: 3}, {b: 2}]}, {a: 1}]}));
if (again.raw === undefined) {
    assert.eq(again.numIndexesBefore, again.numIndexesAfter);
}
assert.eq(before, coll.getIndexes().length);
assert.commandFailedWithCode(made({$and: [{$or: [{c: 3}, {b: 3}]}, {a: 1}]}), ErrorCodes.IndexKeySpecsConflict);
