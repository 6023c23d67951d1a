/**
 * $natural is the order of the collection itself, and hints at not using an index.
 * Fails when a $natural sort does not return the order of insertion forwards and backwards, or is combined with another key.
 *
 * @tags: [
 *   # Each shard has a natural order of its own.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.sort_natural;
coll.drop();
const order = [3, 1, 4, 15, 9, 2, 6];
for (const id of order) {
    assert.commandWorked(coll.insert({_id: id}));
}

function ids(cursor) {
    return cursor.toArray().map(doc => doc._id);
}
assert.eq(order, ids(coll.find().sort({$natural: 1})));
assert.eq(order.slice().reverse(), ids(coll.find().sort({$natural: -1})));
assert.eq([9, 15], ids(coll.find({_id: {$gt: 6}}).sort({$natural: -1}).limit(2)));
assert.eq(order, ids(coll.find({_id: {$gt: 0}}).hint({$natural: 1})));
assert.eq(order.slice().reverse(), ids(coll.find().hint({$natural: -1})));

// Updates keep a document's place, a deletion and a new insertion move it to the end.
assert.commandWorked(coll.update({_id: 3}, {$set: {padding: "x".repeat(1000)}}));
assert.eq(order, ids(coll.find().sort({$natural: 1})));
assert.commandWorked(coll.remove({_id: 1}));
assert.commandWorked(coll.insert({_id: 1}));
assert.eq([3, 4, 15, 9, 2, 6, 1], ids(coll.find().sort({$natural: 1})));

assert.commandFailedWithCode(db.runCommand({find: coll.getName(), sort: {$natural: 1, _id: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), sort: {$natural: 5}}), [ErrorCodes.BadValue, 15975]);
