/**
 * An upsert may name the document that it inserts where nothing matches, apart from the update of what does.
 * Fails when upsertSupplied is not heeded, or heeded for a document that was found.
 */
const coll = db.update_upsert_supplied;
coll.drop();
assert.commandWorked(coll.insert({_id: 0}));

function update(q, more) {
    const statement = {q, u: [{$set: {made: {$concat: ["updated ", "$$new.s"]}}}], upsert: true, ...more};
    return db.runCommand({update: coll.getName(), updates: [statement]});
}
// By `_id`, by another field, and with an `_id` that only the filter has.
let reply = assert.commandWorked(update({_id: 1}, {upsertSupplied: true, c: {new: {_id: 1, s: "one"}}}));
assert.eq([{index: 0, _id: 1}], reply.upserted);
reply = assert.commandWorked(update({k: 2}, {upsertSupplied: true, c: {new: {_id: 2, k: 2, s: "two"}}}));
assert.eq([{index: 0, _id: 2}], reply.upserted);
reply = assert.commandWorked(update({_id: 3}, {upsertSupplied: true, c: {new: {s: "three"}}}));
assert.eq([{index: 0, _id: 3}], reply.upserted);
assert.docEq([{_id: 1, s: "one"}, {_id: 2, k: 2, s: "two"}, {_id: 3, s: "three"}], coll.find({_id: {$gt: 0}}).sort({_id: 1}).toArray());

// What is found is updated, and without the option the update makes the document.
reply = assert.commandWorked(update({_id: 2}, {upsertSupplied: true, c: {new: {_id: 2, s: "again"}}}));
assert.eq([1, 1, undefined], [reply.n, reply.nModified, reply.upserted]);
assert.docEq({_id: 2, k: 2, s: "two", made: "updated again"}, coll.findOne({_id: 2}));
assert.commandWorked(update({k: 4}, {upsertSupplied: false, c: {new: {_id: 4, s: "four"}}}));
assert.docEq([{k: 4, made: "updated four"}], coll.find({k: 4}, {_id: 0}).toArray());

// Without upsert nothing is inserted; what is supplied must be a document.
assert.eq(0, assert.commandWorked(update({_id: 5}, {upsert: false, upsertSupplied: true, c: {new: {_id: 5, s: ""}}})).n);
for (const c of [{new: 1}, {new: {$set: {a: 1}}}]) {
    assert.commandFailedWithCode(update({_id: 5}, {upsertSupplied: true, c}), ErrorCodes.FailedToParse);
}
assert.eq(0, coll.countDocuments({_id: 5}));

const op = {update: 0, filter: {_id: 6}, updateMods: [{$set: {a: 1}}], upsert: true, upsertSupplied: true, constants: {new: {_id: 6, s: "six"}}};
reply = assert.commandWorked(db.adminCommand({bulkWrite: 1, ops: [op], nsInfo: [{ns: coll.getFullName()}]}));
assert.eq(1, reply.nUpserted, tojson(reply));
assert.docEq({_id: 6, s: "six"}, coll.findOne({_id: 6}));
