/**
 * $setOnInsert tells a new document from one that was there.
 * Fails when it changes an existing document, or is left out of an inserted one.
 */
const coll = db.update_set_on_insert;
coll.drop();
const update = {$set: {seen: 1}, $setOnInsert: {born: "now", "o.p": 2}};

const inserted = assert.commandWorked(coll.update({_id: 1}, update, {upsert: true}));
assert.eq(0, inserted.nMatched);
assert.eq(1, inserted.nUpserted);
assert.eq({_id: 1, born: "now", o: {p: 2}, seen: 1}, coll.findOne({_id: 1}));

const matched = assert.commandWorked(coll.update({_id: 1}, {$set: {seen: 2}, $setOnInsert: {born: "later"}}, {upsert: true}));
assert.eq(1, matched.nMatched);
assert.eq(1, matched.nModified);
assert.eq("now", coll.findOne({_id: 1}).born);

// Alone it changes nothing.
const nothing = assert.commandWorked(coll.update({_id: 1}, {$setOnInsert: {born: "later"}}, {upsert: true}));
assert.eq(0, nothing.nModified);
assert.eq(0, assert.commandWorked(coll.update({_id: 2}, {$setOnInsert: {a: 1}})).nMatched);
assert.eq(null, coll.findOne({_id: 2}));

// Even the _id may come from it, as long as the query does not name another.
const named = assert.commandWorked(coll.update({k: 5}, {$setOnInsert: {_id: "given"}}, {upsert: true}));
assert.eq("given", named.getUpsertedId()._id);
assert.eq({_id: "given", k: 5}, coll.findOne({k: 5}));
assert.commandFailedWithCode(coll.update({_id: 7}, {$setOnInsert: {_id: 8}}, {upsert: true}), ErrorCodes.ImmutableField);
assert.commandFailedWithCode(coll.update({_id: 7}, {$setOnInsert: {a: 1}, $set: {a: 2}}, {upsert: true}),
                             ErrorCodes.ConflictingUpdateOperators);
