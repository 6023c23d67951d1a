/**
 * A replacement puts a whole document in another's place and keeps its _id.
 * Fails when old fields survive, the _id changes, or a replacement is taken for many documents or mixed with operators.
 */
const coll = db.update_replacement;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 1, b: 2}, {_id: 2, a: 1}]));

const result = assert.commandWorked(coll.update({_id: 1}, {c: 3}));
assert.eq([1, 1], [result.nMatched, result.nModified]);
assert.eq({_id: 1, c: 3}, coll.findOne({_id: 1}));

// The _id may be repeated and goes to the front; an equal document is no modification.
assert.commandWorked(coll.update({_id: 1}, {z: 1, _id: 1, y: 2}));
assert.eq(["_id", "z", "y"], Object.keys(coll.findOne({_id: 1})));
assert.eq(0, assert.commandWorked(coll.update({_id: 1}, {_id: 1, z: 1, y: 2})).nModified);
// One without it is compared as it was given, and so is never equal.
assert.eq(1, assert.commandWorked(coll.update({_id: 1}, {z: 1, y: 2})).nModified);
assert.commandWorked(coll.update({_id: 1}, {}));
assert.eq({_id: 1}, coll.findOne({_id: 1}));

// So it is validated, too.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {needed: {$exists: true}}}));
assert.commandFailedWithCode(coll.update({_id: 1}, {}), ErrorCodes.DocumentValidationFailure);
assert.eq(0, assert.commandWorked(coll.update({_id: 1}, {_id: 1})).nModified);
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {}}));

assert.commandFailedWithCode(coll.update({_id: 1}, {_id: 5, a: 1}), ErrorCodes.ImmutableField);
assert.commandFailedWithCode(coll.update({a: 1}, {b: 1}, {multi: true}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(db.runCommand({update: coll.getName(), updates: [{q: {_id: 1}, u: {a: 1, $set: {b: 1}}}]}),
                             [ErrorCodes.DollarPrefixedFieldName, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(db.runCommand({update: coll.getName(), updates: [{q: {_id: 1}, u: {$set: {b: 1}, a: 1}}]}),
                             ErrorCodes.FailedToParse);

// An upserted replacement takes its _id from the query, and nothing else.
const upserted = assert.commandWorked(coll.update({_id: 9, other: 7}, {a: 9}, {upsert: true}));
assert.eq(9, upserted.getUpsertedId()._id);
assert.eq({_id: 9, a: 9}, coll.findOne({_id: 9}));
assert.commandWorked(coll.replaceOne({_id: 9}, {b: 1}));
assert.eq({_id: 9, b: 1}, coll.findOne({_id: 9}));
assert.eq({_id: 2, a: 1}, coll.findOne({_id: 2}));
