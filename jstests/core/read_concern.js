/**
 * A read says which guarantee it wants, and one that cannot be given must be refused.
 * Fails when an unknown level or a malformed read concern is taken, or a command that has none takes one.
 */
const coll = db.read_concern;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));
const name = coll.getName();

for (const level of ["local", "available", "majority"]) {
    assert.eq([{_id: 1}], assert.commandWorked(db.runCommand({find: name, readConcern: {level: level}})).cursor.firstBatch, level);
    assert.eq(1, assert.commandWorked(db.runCommand({count: name, readConcern: {level: level}})).n);
    assert.eq([1], assert.commandWorked(db.runCommand({distinct: name, key: "_id", readConcern: {level: level}})).values);
    assert.commandWorked(db.runCommand({aggregate: name, pipeline: [], cursor: {}, readConcern: {level: level}}));
}
assert.commandWorked(db.runCommand({find: name, readConcern: {}}));

assert.commandFailedWithCode(db.runCommand({find: name, readConcern: {level: "absolute"}}), [ErrorCodes.BadValue, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(db.runCommand({find: name, readConcern: {level: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({find: name, readConcern: 1}), [ErrorCodes.TypeMismatch, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(db.runCommand({find: name, readConcern: {level: "local", unheardOf: 1}}), [40415, ErrorCodes.InvalidOptions]);
assert.commandFailedWithCode(db.runCommand({find: name, readConcern: {level: "majority", afterClusterTime: 5}}),
                             [ErrorCodes.TypeMismatch, ErrorCodes.InvalidOptions]);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 2}], readConcern: {level: "majority"}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(db.runCommand({create: "read_concern_none", readConcern: {level: "majority"}}), ErrorCodes.InvalidOptions);
assert.eq(1, coll.find().itcount());
