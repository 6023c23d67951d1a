/**
 * Uniqueness holds among the documents that are in the index, which is how optional unique keys are made.
 * Fails when documents outside a sparse or partial index collide, or those inside do not.
 *
 * @tags: [
 *   # A unique index must begin with the shard key.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.index_unique_sparse_and_partial;
coll.drop();
assert.commandWorked(coll.createIndex({email: 1}, {unique: true, sparse: true}));
assert.commandWorked(coll.createIndex({seat: 1}, {unique: true, partialFilterExpression: {booked: true}}));

assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}, {_id: 3, email: null}, {_id: 4, email: "x"}]));
assert.commandFailedWithCode(coll.insert({_id: 5, email: "x"}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.insert({_id: 5, email: null}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {email: "x"}}), ErrorCodes.DuplicateKey);
assert.commandWorked(coll.update({_id: 4}, {$unset: {email: 1}}));
assert.commandWorked(coll.update({_id: 1}, {$set: {email: "x"}}));

assert.commandWorked(coll.update({_id: 1}, {$set: {seat: 7, booked: true}}));
assert.commandWorked(coll.update({_id: 2}, {$set: {seat: 7, booked: false}}));
assert.commandWorked(coll.update({_id: 3}, {$set: {seat: 7}}));
assert.commandFailedWithCode(coll.update({_id: 2}, {$set: {booked: true}}), ErrorCodes.DuplicateKey);
assert.eq(false, coll.findOne({_id: 2}).booked);
assert.commandWorked(coll.update({_id: 1}, {$set: {booked: false}}));
assert.commandWorked(coll.update({_id: 2}, {$set: {booked: true}}));
assert.eq([2], coll.find({seat: 7, booked: true}).toArray().map(doc => doc._id));
