/**
 * A unique index is how applications keep two documents from having one key.
 * Fails when a duplicate gets in by an insert, an update, an upsert or the building of the index.
 *
 * @tags: [
 *   # A unique index must begin with the shard key.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.index_unique;
coll.drop();
assert.commandWorked(coll.createIndex({a: 1, b: 1}, {unique: true}));
assert.commandWorked(coll.insert([{_id: 1, a: 1, b: 1}, {_id: 2, a: 1, b: 2}, {_id: 3, a: 1}]));

const duplicate = coll.insert({_id: 4, a: 1, b: 2});
assert.commandFailedWithCode(duplicate, ErrorCodes.DuplicateKey);
assert(/index: a_1_b_1 dup key: \{ a: 1\.0, b: 2\.0 \}/.test(duplicate.getWriteError().errmsg), duplicate.getWriteError().errmsg);
assert.commandFailedWithCode(coll.insert({_id: 4, a: 1}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.insert({_id: 4, a: 1, b: null}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {b: 2}}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.update({_id: 1}, {$unset: {b: 1}}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.update({_id: 9}, {$set: {a: 1, b: 1}}, {upsert: true}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.update({_id: 1}, {a: 1, b: NumberLong(2)}), ErrorCodes.DuplicateKey);
assert.eq([{_id: 1, a: 1, b: 1}, {_id: 2, a: 1, b: 2}, {_id: 3, a: 1}], coll.find().sort({_id: 1}).toArray());

// A document may repeat a key within its own array, and may be rewritten with the key it has.
assert.commandWorked(coll.insert({_id: 5, a: [5, 5], b: 1}));
assert.commandFailedWithCode(coll.insert({_id: 6, a: [4, 5], b: 1}), ErrorCodes.DuplicateKey);
assert.commandWorked(coll.update({_id: 2}, {$set: {a: 1, b: 2, c: 1}}));

// After a removal the key is free.
assert.commandWorked(coll.remove({_id: 2}));
assert.commandWorked(coll.insert({_id: 7, a: 1, b: 2}));

// The index cannot be built over duplicates, and leaves nothing when it fails.
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, k: 1}, {_id: 2, k: 1}]));
assert.commandFailedWithCode(coll.createIndex({k: 1}, {unique: true}), ErrorCodes.DuplicateKey);
assert.eq(["_id_"], coll.getIndexes().map(index => index.name));
assert.commandWorked(coll.remove({_id: 2}));
assert.commandWorked(coll.createIndex({k: 1}, {unique: true}));
assert.eq(true, coll.getIndexes().filter(index => index.name == "k_1")[0].unique);
assert.commandFailedWithCode(coll.createIndex({h: "hashed"}, {unique: true}), [ErrorCodes.CannotCreateIndex, 16764]);
