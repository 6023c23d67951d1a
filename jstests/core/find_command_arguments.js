/**
 * Drivers send the find command with many optional arguments, and a wrong one must never be taken for another meaning.
 * Fails when an argument of the wrong type or sign is taken, an unknown one is ignored, or limit and skip count wrongly.
 */
const coll = db.find_command_arguments;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function firstIds(options) {
    const reply = assert.commandWorked(db.runCommand(Object.assign({find: name, sort: {_id: 1}}, options)));
    return reply.cursor.firstBatch.map(doc => doc._id);
}
assert.eq([0, 1, 2], firstIds({limit: 3}));
assert.eq([7, 8, 9], firstIds({skip: 7}));
assert.eq([4, 5], firstIds({skip: NumberLong(4), limit: NumberLong(2), batchSize: 10}));
assert.eq([], firstIds({skip: 100}));
assert.eq(10, firstIds({limit: 0}).length);
assert.eq([9, 8], firstIds({sort: {_id: -1}, limit: 2}));
assert.eq([0, 1], firstIds({limit: 2, singleBatch: true, comment: {any: "thing"}, allowDiskUse: true}));

function refused(codes, options) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({find: name}, options)), codes, () => tojson(options));
}
refused([ErrorCodes.BadValue, 51024], {limit: -1});
refused([ErrorCodes.BadValue, 51024], {skip: -1});
refused([ErrorCodes.BadValue, 51024], {batchSize: -1});
refused(ErrorCodes.TypeMismatch, {limit: "1"});
refused(ErrorCodes.TypeMismatch, {filter: 1});
refused(ErrorCodes.TypeMismatch, {sort: "_id"});
refused(ErrorCodes.TypeMismatch, {projection: [1]});
refused(ErrorCodes.TypeMismatch, {singleBatch: "yes"});
refused(ErrorCodes.TypeMismatch, {allowDiskUse: "yes"});
refused(ErrorCodes.TypeMismatch, {allowPartialResults: "yes"});
refused(40415, {unheardOf: 1});
refused([ErrorCodes.TypeMismatch, ErrorCodes.FailedToParse, ErrorCodes.BadValue], {maxTimeMS: "1"});
refused(ErrorCodes.BadValue, {maxTimeMS: -1});
refused(ErrorCodes.FailedToParse, {awaitData: true});
refused(ErrorCodes.BadValue, {hint: "no_such_index"});
refused(ErrorCodes.BadValue, {hint: {no: 1}});

assert.commandFailedWithCode(db.runCommand({find: ""}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({find: "a\0b"}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({find: null}), [ErrorCodes.InvalidNamespace, ErrorCodes.BadValue]);
assert.eq([], assert.commandWorked(db.runCommand({find: "no_such_collection"})).cursor.firstBatch);
