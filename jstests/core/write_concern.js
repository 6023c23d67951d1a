/**
 * A write says how far it must have come before it is answered.
 * Fails when a malformed write concern is taken, one that can be met is reported as an error, or an unacknowledged write is lost.
 */
const coll = db.write_concern;
coll.drop();
const name = coll.getName();
let id = 0;

function insert(writeConcern) {
    return db.runCommand({insert: name, documents: [{_id: id++}], writeConcern: writeConcern});
}
for (const writeConcern of [{}, {w: 1}, {w: "majority"}, {w: 1, j: true}, {w: 1, wtimeout: 1000}, {w: "majority", wtimeout: NumberLong(0)}, {w: 1, j: false}]) {
    const reply = assert.commandWorked(insert(writeConcern), () => tojson(writeConcern));
    assert.eq(1, reply.n);
    assert(!reply.hasOwnProperty("writeConcernError"), () => tojson(reply));
}
assert.eq(7, coll.find().itcount());

for (const writeConcern of [{w: -1}, {w: 51}, {w: true}, {w: 1, unheardOf: 1}, {w: 1, j: "yes"}, {w: {}}]) {
    assert.commandFailedWithCode(insert(writeConcern),
                                 [ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, ErrorCodes.BadValue, 40415],
                                 () => tojson(writeConcern));
}
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 100}], writeConcern: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 100}], writeConcern: {j: true, fsync: true}}), ErrorCodes.FailedToParse);
assert.eq(7, coll.find().itcount());

// Who asks for no acknowledgement hears of no statement's error, unless the journal is to be waited for.
assert.commandWorked(db.runCommand({insert: name, documents: [{_id: "once"}]}));
const again = (writeConcern) => db.runCommand({insert: name, documents: [{_id: "once"}], writeConcern: writeConcern});
assert(!("writeErrors" in assert.commandWorkedIgnoringWriteErrors(again({w: 0}))));
assert.eq(11000, again({w: 0, j: true}).writeErrors[0].code);
assert.eq(11000, again({w: 1}).writeErrors[0].code);
assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {_id: "once"}, limit: 1}]}));

// Reads have none.
assert.commandFailedWithCode(db.runCommand({find: name, writeConcern: {w: 1}}), [ErrorCodes.InvalidOptions, 40415]);
assert.commandFailedWithCode(db.runCommand({count: name, writeConcern: {w: 1}}), [ErrorCodes.InvalidOptions, 40415]);

// The other commands that write take one.
assert.commandWorked(db.runCommand({update: name, updates: [{q: {_id: 0}, u: {$set: {a: 1}}}], writeConcern: {w: "majority"}}));
assert.commandWorked(db.runCommand({findAndModify: name, query: {_id: 0}, update: {$set: {a: 2}}, writeConcern: {w: "majority"}}));
assert.commandWorked(db.runCommand({createIndexes: name, indexes: [{key: {a: 1}, name: "a_1"}], writeConcern: {w: "majority"}}));
assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {_id: 0}, limit: 1}], writeConcern: {w: 1, j: true}}));
assert.commandWorked(db.runCommand({drop: name, writeConcern: {w: "majority"}}));
