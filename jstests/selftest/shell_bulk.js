/**
 * The bulk API: order, counts, the place of an error in the list, limits of a batch. A bulk that went on after an error
 * of an ordered list, or numbered an error within its batch, would fail here.
 */
(function() {
"use strict";

const coll = db.getSiblingDB(jsTestName()).shell_bulk;
coll.drop();

let bulk = coll.initializeOrderedBulkOp();
bulk.insert({_id: 1, a: 1});
bulk.insert({_id: 2, a: 1});
bulk.find({a: 1}).update({$set: {b: 1}});
bulk.find({_id: 1}).updateOne({$set: {c: 1}});
bulk.find({_id: 3}).upsert().updateOne({$set: {a: 3}});
bulk.find({_id: 4}).upsert().replaceOne({a: 4});
bulk.find({_id: 2}).removeOne();
assert.eq({nInsertOps: 2, nUpdateOps: 4, nRemoveOps: 1, nBatches: 3}, bulk.toJSON());
let result = bulk.execute();
assert(result instanceof BulkWriteResult);
assert.eq(2, result.nInserted);
assert.eq(3, result.nMatched);
assert.eq(3, result.nModified);
assert.eq(2, result.nUpserted);
assert.eq(1, result.nRemoved);
assert.eq([{index: 4, _id: 3}, {index: 5, _id: 4}], result.getUpsertedIds());
assert.eq([{_id: 1, a: 1, b: 1, c: 1}, {_id: 3, a: 3}, {_id: 4, a: 4}], coll.find().sort({_id: 1}).toArray());
assert.includes(tojson(result), '"writeErrors" : [ ]');
assert.throws(() => bulk.execute());
assert.throws(() => coll.initializeOrderedBulkOp().execute());

// An ordered list stops at its first error, which stands where the statement stood in the list.
bulk = coll.initializeOrderedBulkOp();
bulk.insert({_id: 10});
bulk.find({_id: 10}).updateOne({$set: {x: 1}});
bulk.insert({_id: 10});
bulk.insert({_id: 11});
bulk.find({_id: 10}).updateOne({$set: {x: 2}});
let error = assert.throws(() => bulk.execute());
assert(error instanceof BulkWriteError);
assert.eq(11000, error.code);
assert.eq(1, error.getWriteErrorCount());
assert.eq(2, error.getWriteErrorAt(0).index);
assert.eq({_id: 10}, error.getWriteErrorAt(0).getOperation());
assert.eq(1, error.toResult().nInserted);
assert.eq(null, coll.findOne({_id: 11}));
assert.eq({_id: 10, x: 1}, coll.findOne({_id: 10}));
assert.writeErrorWithCode(error, ErrorCodes.DuplicateKey);

// An unordered list goes on.
bulk = coll.initializeUnorderedBulkOp();
bulk.insert({_id: 10});
bulk.find({_id: 10}).remove();
bulk.insert({_id: 20});
bulk.insert({_id: 1});
error = assert.throws(() => bulk.execute());
assert.sameMembers([0, 3], error.getWriteErrors().map(each => each.index));
assert.eq(1, error.nInserted);
assert.eq(1, error.nRemoved);

// Options of statements.
bulk = coll.initializeOrderedBulkOp();
bulk.insert({_id: 30, list: [1, 9]});
bulk.find({_id: 30}).arrayFilters([{big: {$gt: 5}}]).updateOne({$set: {"list.$[big]": 0}});
bulk.find({_id: 30}).hint({_id: 1}).updateOne({$set: {hinted: 1}});
bulk.execute();
assert.eq({_id: 30, list: [1, 0], hinted: 1}, coll.findOne({_id: 30}));
bulk = coll.initializeOrderedBulkOp();
bulk.find({t: "b"}).collation({locale: "en", strength: 2}).upsert().update({$set: {collated: 1}});
bulk.find({t: "b"}).collation({locale: "en"}).removeOne();
assert.eq([
    {q: {t: "b"}, u: {$set: {collated: 1}}, multi: true, upsert: true, collation: {locale: "en", strength: 2}},
    {q: {t: "b"}, limit: 1, collation: {locale: "en"}},
], bulk.getOperations().map(batch => batch.operations[0]));
assert.throws(() => coll.initializeOrderedBulkOp().find({}).update({plain: 1}));
assert.throws(() => coll.initializeOrderedBulkOp().find({}).replaceOne({$set: {a: 1}}));
assert.throws(() => coll.initializeOrderedBulkOp().find());

// More bytes than one command may have.
coll.drop();
const filler = "x".repeat(1024 * 1024);
bulk = coll.initializeUnorderedBulkOp();
for (let i = 0; i < 20; i++) bulk.insert({_id: i, filler});
assert.gt(bulk.toJSON().nBatches, 1);
assert.eq(20, bulk.execute().nInserted);
assert.eq(20, coll.count());
coll.drop();
const documents = [];
for (let i = 0; i < 20; i++) documents.push({_id: i, filler});
assert.eq(20, coll.insert(documents).nInserted);

// bulkWrite.
coll.drop();
result = coll.bulkWrite([
    {insertOne: {document: {_id: 1, a: 1}}},
    {insertOne: {document: {_id: 2, a: 1}}},
    {updateMany: {filter: {a: 1}, update: {$set: {b: 1}}}},
    {updateOne: {filter: {_id: 3}, update: {$set: {a: 3}}, upsert: true}},
    {replaceOne: {filter: {_id: 2}, replacement: {a: 2}}},
    {deleteOne: {filter: {_id: 1}}},
    {deleteMany: {filter: {a: 77}}},
]);
assert.eq({
    acknowledged: true, deletedCount: 1, insertedCount: 2, matchedCount: 3, modifiedCount: 3, upsertedCount: 1,
    insertedIds: {"0": 1, "1": 2}, upsertedIds: {"3": 3},
}, result);
error = assert.throws(() => coll.bulkWrite([
    {insertOne: {document: {_id: 2}}}, {insertOne: {document: {_id: 5}}},
], {ordered: false}));
assert(error instanceof BulkWriteError);
assert.neq(null, coll.findOne({_id: 5}));
assert.throws(() => coll.bulkWrite([{nosuch: {}}]));
})();
