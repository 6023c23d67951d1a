/**
 * bulkWrite is what drivers and shells offer for mixed batches.
 * Fails when one of its six operations is executed differently from the method of the same name.
 */
const coll = db.bulk_write_method;
coll.drop();

const result = coll.bulkWrite([
    {insertOne: {document: {_id: 1, v: 1}}},
    {insertOne: {document: {_id: 2, v: 2}}},
    {insertOne: {document: {_id: 3, v: 3}}},
    {updateOne: {filter: {v: {$gte: 2}}, update: {$set: {one: true}}}},
    {updateMany: {filter: {v: {$gte: 1}}, update: {$inc: {v: 10}}}},
    {updateOne: {filter: {_id: 4}, update: {$set: {v: 4}}, upsert: true}},
    {replaceOne: {filter: {_id: 1}, replacement: {replaced: true}}},
    {deleteOne: {filter: {v: 12}}},
    {deleteMany: {filter: {v: {$gt: 100}}}},
]);
assert.eq(3, result.insertedCount);
assert.eq(5, result.matchedCount);
assert.eq(5, result.modifiedCount);
assert.eq(1, result.deletedCount);
assert.eq(1, result.upsertedCount);
assert.eq(4, result.upsertedIds[5]);
assert.eq([1, 3, 4], coll.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq({_id: 1, replaced: true}, coll.findOne({_id: 1}));

// Array filters, pipelines and hints pass through.
assert.commandWorked(coll.insert({_id: 9, a: [1, 2, 3]}));
coll.bulkWrite([
    {updateOne: {filter: {_id: 9}, update: {$set: {"a.$[e]": 0}}, arrayFilters: [{e: {$gte: 2}}], hint: {_id: 1}}},
    {updateOne: {filter: {_id: 9}, update: [{$set: {sum: {$sum: "$a"}}}]}},
]);
assert.eq({_id: 9, a: [1, 0, 0], sum: 1}, coll.findOne({_id: 9}));

const error = assert.throws(() => coll.bulkWrite([{insertOne: {document: {_id: 20}}}, {insertOne: {document: {_id: 20}}}, {insertOne: {document: {_id: 21}}}]));
assert.eq(ErrorCodes.DuplicateKey, error.getWriteErrors()[0].code);
assert.eq(null, coll.findOne({_id: 21}));
assert.throws(() => coll.bulkWrite([{insertOne: {document: {_id: 20}}}, {insertOne: {document: {_id: 21}}}], {ordered: false}));
assert.neq(null, coll.findOne({_id: 21}));
