/**
 * The bulkWrite command writes to several collections at once and answers with a cursor over the results.
 * Fails when a result stands under another index, an ordered bulk goes on after an error, or a count of the reply is wrong.
 */
const one = db.bulk_write_command_one;
const two = db.bulk_write_command_two;
one.drop();
two.drop();
const nsInfo = [{ns: one.getFullName()}, {ns: two.getFullName()}];

function bulkWrite(ops, options) {
    return db.adminCommand(Object.assign({bulkWrite: 1, ops: ops, nsInfo: nsInfo}, options));
}

let reply = assert.commandWorked(bulkWrite([
    {insert: 0, document: {_id: 1, v: 1}},
    {insert: 1, document: {_id: 1, v: 1}},
    {insert: 1, document: {_id: 2, v: 1}},
    {update: 1, filter: {v: 1}, updateMods: {$set: {v: 2}}, multi: true},
    {update: 0, filter: {_id: 7}, updateMods: {$set: {v: 7}}, upsert: true},
    {delete: 1, filter: {_id: 2}, multi: false},
]));
assert.eq([3, 2, 2, 1, 1, 0],
          [reply.nInserted, reply.nMatched, reply.nModified, reply.nUpserted, reply.nDeleted, reply.nErrors]);
const results = reply.cursor.firstBatch;
assert.eq(0, reply.cursor.id);
assert.eq("admin.$cmd.bulkWrite", reply.cursor.ns);
assert.eq([0, 1, 2, 3, 4, 5], results.map(r => r.idx));
assert.eq([1, 1, 1, 2, 1, 1], results.map(r => r.n));
assert.eq(2, results[3].nModified);
assert.eq({_id: 7}, results[4].upserted);
assert.eq([{_id: 1, v: 1}, {_id: 7, v: 7}], one.find().sort({_id: 1}).toArray());
assert.eq([{_id: 1, v: 2}], two.find().toArray());

const failing = [{insert: 0, document: {_id: 100}}, {insert: 0, document: {_id: 1}}, {insert: 1, document: {_id: 100}}];
reply = assert.commandWorked(bulkWrite(failing, {ordered: true}));
assert.eq([1, 1], [reply.nInserted, reply.nErrors]);
assert.eq([1, 0], reply.cursor.firstBatch.map(r => r.ok));
assert.eq(ErrorCodes.DuplicateKey, reply.cursor.firstBatch[1].code);
assert.eq(null, two.findOne({_id: 100}));

reply = assert.commandWorked(bulkWrite(failing.slice(1), {ordered: false, errorsOnly: true}));
assert.eq([1, 1], [reply.nInserted, reply.nErrors]);
assert.eq([0], reply.cursor.firstBatch.map(r => r.idx));

assert.commandFailedWithCode(bulkWrite([]), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(bulkWrite([{insert: 5, document: {_id: 1}}]), ErrorCodes.BadValue);
assert.commandFailedWithCode(bulkWrite([{insert: -1, document: {_id: 1}}]), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(db.runCommand({bulkWrite: 1, ops: [{insert: 0, document: {}}], nsInfo: nsInfo}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(db.adminCommand({bulkWrite: 1, ops: [{insert: 0, document: {}}]}), 40414);

// The place of a namespace may be any number, an unknown kind is an unknown field, and a UUID must be that of the collection.
reply = assert.commandWorked(bulkWrite([{insert: NumberDecimal("1"), document: {_id: 200}}]));
assert.eq({_id: 200}, two.findOne({_id: 200}));
assert.commandFailedWithCode(bulkWrite([{upsert: 0, document: {_id: 1}}]), 40415);
reply = assert.commandWorked(db.adminCommand({
    bulkWrite: 1,
    ops: [{insert: 0, document: {_id: 300}}],
    nsInfo: [{ns: one.getFullName(), collectionUUID: UUID()}],
}));
assert.eq([0, 1], [reply.nInserted, reply.nErrors]);
assert.eq(ErrorCodes.CollectionUUIDMismatch, reply.cursor.firstBatch[0].code);
assert.eq(null, one.findOne({_id: 300}));
