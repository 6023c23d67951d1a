/**
 * findAndModify takes many options that exclude each other.
 * Fails when a contradictory or malformed request is executed, or one that fails leaves a trace.
 */
const coll = db.find_and_modify_errors;
coll.drop();
const doc = {_id: 1, v: 1, a: [1]};
assert.commandWorked(coll.insert(doc));
const name = coll.getName();

function refused(codes, options) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({findAndModify: name, query: {_id: 1}}, options)), codes, () => tojson(options));
    assert.eq([doc], coll.find().toArray());
}
refused(ErrorCodes.FailedToParse, {});
refused(ErrorCodes.FailedToParse, {remove: true, update: {$set: {v: 2}}});
refused(ErrorCodes.FailedToParse, {remove: true, upsert: true});
refused(ErrorCodes.FailedToParse, {remove: true, new: true});
refused(ErrorCodes.FailedToParse, {remove: true, arrayFilters: []});
refused(40415, {update: {$set: {v: 2}}, unheardOf: 1});
refused(ErrorCodes.TypeMismatch, {update: {$set: {v: 2}}, query: 1});
refused(ErrorCodes.TypeMismatch, {update: {$set: {v: 2}}, sort: 1});
refused(15975, {update: {$set: {v: 2}}, sort: {v: 5}});
refused(ErrorCodes.TypeMismatch, {update: {$set: {v: 2}}, fields: 1});
refused(ErrorCodes.FailedToParse, {update: 1});
refused(ErrorCodes.FailedToParse, {update: {$unheardOf: {v: 1}}});
refused(ErrorCodes.ImmutableField, {update: {$set: {_id: 2}}});
refused(ErrorCodes.TypeMismatch, {update: {$inc: {a: 1}}});
refused(ErrorCodes.BadValue, {update: {$set: {v: 2}}, query: {$bad: 1}});
refused(31254, {update: {$set: {v: 2}}, fields: {v: 1, a: 0}});

assert.commandFailedWithCode(db.runCommand({findAndModify: "", query: {}, remove: true}), ErrorCodes.InvalidNamespace);

// A duplicate key of an upsert is an error of the command.
assert.commandFailedWithCode(db.runCommand({findAndModify: name, query: {_id: 1, v: 99}, update: {$set: {x: 1}}, upsert: true}), ErrorCodes.DuplicateKey);
assert.eq([doc], coll.find().toArray());

// A helper without an update or a removal does not even send it.
assert.throws(() => coll.findAndModify({query: {_id: 1}}));
