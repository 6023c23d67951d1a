/**
 * Bulk operations send many writes as few commands and join the replies to one result.
 * Fails when an operation is lost, executed after an error of an ordered bulk, or counted in the wrong place.
 */
const coll = db.bulk_ordered_and_unordered;
coll.drop();

const ordered = coll.initializeOrderedBulkOp();
ordered.insert({_id: 1, v: 1});
ordered.insert({_id: 2, v: 1});
ordered.find({v: 1}).update({$set: {v: 2}});
ordered.find({v: 2}).updateOne({$set: {w: 1}});
ordered.find({_id: 3}).upsert().updateOne({$set: {v: 3}});
ordered.find({_id: 1}).replaceOne({r: 1});
ordered.insert({_id: 4});
ordered.find({_id: 2}).removeOne();
ordered.find({_id: {$gt: 3}}).remove();
const result = assert.commandWorked(ordered.execute());
assert.eq(3, result.nInserted);
assert.eq(1, result.nUpserted);
assert.eq(4, result.nMatched);
assert.eq(4, result.nModified);
assert.eq(2, result.nRemoved);
assert.eq(4, result.getUpsertedIds()[0].index);
assert.eq(3, result.getUpsertedIds()[0]._id);
assert.eq([{_id: 1, r: 1}, {_id: 3, v: 3}], coll.find().sort({_id: 1}).toArray());

function withErrors(bulk) {
    coll.drop();
    assert.commandWorked(coll.insert({_id: 1}));
    bulk.insert({_id: 0});
    bulk.insert({_id: 1});
    bulk.find({_id: 0}).updateOne({$set: {v: 1}});
    bulk.find({_id: 1}).updateOne({$set: {_id: 9}});
    bulk.insert({_id: 2});
    const error = assert.throws(() => bulk.execute());
    return [error.nInserted, error.nModified, error.getWriteErrors().map(e => e.index), error.getWriteErrors().map(e => e.code)];
}
assert.eq([1, 0, [1], [ErrorCodes.DuplicateKey]], withErrors(coll.initializeOrderedBulkOp()));
assert.eq([0, 1], coll.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq([2, 1, [1, 3], [ErrorCodes.DuplicateKey, ErrorCodes.ImmutableField]], withErrors(coll.initializeUnorderedBulkOp()));
assert.eq([0, 1, 2], coll.find().sort({_id: 1}).toArray().map(doc => doc._id));

// More operations than one command takes.
coll.drop();
const many = coll.initializeUnorderedBulkOp();
for (let i = 0; i < 2500; i++) {
    many.insert({_id: i});
}
assert.eq(2500, many.execute().nInserted);
assert.eq(2500, coll.countDocuments({}));
assert.throws(() => many.execute());
assert.throws(() => coll.initializeOrderedBulkOp().execute());
