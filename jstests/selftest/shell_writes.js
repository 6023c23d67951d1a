/**
 * Results of writes: counts, errors and their texts for both APIs. A result that hid an error, or counted a matched
 * document as modified, would fail here.
 */
(function() {
"use strict";

const coll = db.getSiblingDB(jsTestName()).shell_writes;
coll.drop();

// Insert.
let result = coll.insert({_id: 1});
assert(result instanceof WriteResult);
assert.eq('WriteResult({ "nInserted" : 1 })', String(result));
assert.eq(1, result.nInserted);
assert(!result.hasWriteError());
assert.writeOK(result);
result = assert.writeErrorWithCode(coll.insert({_id: 1}), ErrorCodes.DuplicateKey);
assert.eq(0, result.nInserted);
assert(result.hasWriteError());
assert.eq(11000, result.getWriteError().code);
assert.includes(result.getWriteError().errmsg, "E11000");
assert.includes(String(result), '"writeError"');
assert.throws(() => assert.commandWorked(result));
const original = {x: 1};
coll.insert(original);
assert.eq(undefined, original._id);
assert.eq(["_id", "x"], Object.keys(coll.findOne({x: 1})));
result = coll.insert([{_id: 2}, {_id: 1}, {_id: 3}]);
assert(result instanceof BulkWriteResult);
assert.eq(1, result.nInserted);
assert.eq(1, result.getWriteErrorCount());
assert.eq(1, result.getWriteErrorAt(0).index);
assert.eq({_id: 1}, result.getWriteErrorAt(0).getOperation());
assert.eq(null, coll.findOne({_id: 3}));
result = coll.insert([{_id: 1}, {_id: 4}, {_id: 2}, {_id: 5}], {ordered: false});
assert.eq(2, result.nInserted);
assert.eq([0, 2], result.getWriteErrors().map(error => error.index));
assert.throws(() => coll.insert());
assert.throws(() => coll.insert([]));

// Update.
assert.eq('WriteResult({ "nMatched" : 1, "nUpserted" : 0, "nModified" : 1 })', String(coll.update({_id: 1}, {$set: {a: 1}})));
assert.eq('WriteResult({ "nMatched" : 1, "nUpserted" : 0, "nModified" : 0 })', String(coll.update({_id: 1}, {$set: {a: 1}})));
result = coll.update({_id: 100}, {$set: {a: 1}}, {upsert: true});
assert.eq('WriteResult({ "nMatched" : 0, "nUpserted" : 1, "nModified" : 0, "_id" : 100 })', String(result));
assert.eq({index: 0, _id: 100}, result.getUpsertedId());
assert.eq(1, coll.update({_id: 101}, {$set: {a: 1}}, true).nUpserted);
assert.eq(1, coll.update({a: 1}, {$set: {b: 1}}).nModified);
assert.eq(3, coll.update({a: 1}, {$set: {b: 2}}, {multi: true}).nMatched);
assert.eq(3, coll.update({a: 1}, {$set: {b: 3}}, false, true).nModified);
assert.commandWorked(coll.update({_id: 1}, {replaced: true}));
assert.eq({_id: 1, replaced: true}, coll.findOne({_id: 1}));
assert.commandWorked(coll.update({_id: 1}, [{$set: {pipeline: 1}}]));
assert.eq(1, coll.findOne({_id: 1}).pipeline);
assert.commandWorked(coll.update({_id: 1}, {$set: {list: [1, 5]}}));
assert.commandWorked(coll.update({_id: 1}, {$set: {"list.$[big]": 9}}, {arrayFilters: [{big: {$gt: 3}}]}));
assert.eq([1, 9], coll.findOne({_id: 1}).list);
assert.writeErrorWithCode(coll.update({_id: 1}, {$nosuch: 1}), ErrorCodes.FailedToParse);
assert.throws(() => coll.update());
assert.throws(() => coll.update({}));

// Save and remove.
assert.eq(1, coll.save({_id: 200, a: 1}).nUpserted);
assert.eq(1, coll.save({_id: 200, a: 2}).nModified);
assert.eq(1, coll.save({saved: 1}).nInserted);
assert.eq('WriteResult({ "nRemoved" : 1 })', String(coll.remove({_id: 200})));
coll.insert([{r: 1}, {r: 1}, {r: 1}]);
assert.eq(1, coll.remove({r: 1}, true).nRemoved);
assert.eq(1, coll.remove({r: 1}, {justOne: true}).nRemoved);
assert.eq(1, coll.remove({r: 1}).nRemoved);
assert.throws(() => coll.remove());

// A command that fails as a whole.
result = coll.insert({_id: 900}, {writeConcern: {w: "nosuchtag", wtimeout: 100}});
assert.commandFailed(result);
result = db.getSiblingDB(jsTestName())["$bad"].insert({_id: 1});
assert(result instanceof WriteCommandError, tojson(result));
assert.commandFailedWithCode(result, ErrorCodes.InvalidNamespace);
assert.throws(() => assert.writeOK(result));

// findAndModify.
coll.remove({});
coll.insert([{_id: 1, n: 1}, {_id: 2, n: 2}]);
assert.eq({_id: 1, n: 1}, coll.findAndModify({query: {_id: 1}, update: {$inc: {n: 1}}}));
assert.eq({_id: 1, n: 3}, coll.findAndModify({query: {_id: 1}, update: {$inc: {n: 1}}, new: true}));
assert.eq({_id: 1}, coll.findAndModify({query: {}, sort: {_id: 1}, remove: true, fields: {_id: 1}}));
assert.eq(null, coll.findAndModify({query: {_id: 77}, update: {$set: {n: 1}}}));
assert.throws(() => coll.findAndModify({query: {_id: 1}}));
assert.eq({_id: 2, n: 2}, coll.findOneAndUpdate({_id: 2}, {$inc: {n: 1}}));
assert.eq({_id: 2, n: 4}, coll.findOneAndUpdate({_id: 2}, {$inc: {n: 1}}, {returnNewDocument: true}));
assert.eq({_id: 2, r: 1}, coll.findOneAndReplace({_id: 2}, {r: 1}, {returnDocument: "after"}));
assert.eq({r: 1}, coll.findOneAndDelete({_id: 2}, {projection: {_id: 0}}));
assert.throws(() => coll.findOneAndUpdate({}, {plain: 1}));
assert.throws(() => coll.findOneAndReplace({}, {$set: {a: 1}}));

// The drivers' API.
assert.eq({acknowledged: true, insertedId: 1}, coll.insertOne({_id: 1, a: 1}));
const duplicate = assert.throwsWithCode(() => coll.insertOne({_id: 1}), ErrorCodes.DuplicateKey);
assert(duplicate instanceof WriteError);
assert.eq({acknowledged: true, insertedIds: [2, 3]}, coll.insertMany([{_id: 2, a: 1}, {_id: 3, a: 1}]));
const many = assert.throws(() => coll.insertMany([{_id: 1}, {_id: 4}, {_id: 2}], {ordered: false}));
assert(many instanceof BulkWriteError);
assert.eq(11000, many.code);
assert.eq(1, many.nInserted);
assert.eq(2, many.getWriteErrorCount());
assert.eq({acknowledged: true, matchedCount: 1, modifiedCount: 1}, coll.updateOne({a: 1}, {$set: {b: 1}}));
assert.eq({acknowledged: true, matchedCount: 3, modifiedCount: 2}, coll.updateMany({a: 1}, {$set: {b: 1}}));
assert.eq({acknowledged: true, matchedCount: 0, modifiedCount: 0, upsertedId: 50}, coll.updateOne({_id: 50}, {$set: {b: 1}}, {upsert: true}));
assert.eq({acknowledged: true, matchedCount: 1, modifiedCount: 1}, coll.replaceOne({_id: 50}, {c: 1}));
assert.eq({acknowledged: true, deletedCount: 1}, coll.deleteOne({a: 1}));
assert.eq({acknowledged: true, deletedCount: 2}, coll.deleteMany({a: 1}));
assert.throws(() => coll.updateOne({}, {plain: 1}));
assert.throws(() => coll.replaceOne({}, {$set: {a: 1}}));
assert.throws(() => coll.insertMany([]));
assert.eq(2, coll.countDocuments({}));
assert.eq(1, coll.countDocuments({}, {limit: 1}));
assert.eq(0, coll.countDocuments({nothing: 1}));
assert.eq(2, coll.estimatedDocumentCount());

// Write concerns.
assert.eq({w: 1, j: true}, new WriteConcern({w: 1, j: true}).toJSON());
assert.eq({w: 2, wtimeout: 9}, new WriteConcern(2, 9).toJSON());
coll.setWriteConcern({w: 1});
assert.eq({w: 1}, coll.getWriteConcern().toJSON());
assert.commandWorked(coll.insert({_id: 600}));
coll.unsetWriteConcern();
assert.eq(undefined, coll.getWriteConcern());
})();
