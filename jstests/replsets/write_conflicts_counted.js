/**
 * serverStatus counts the writes that met another transaction's, and a fail point gives transactions such conflicts on request.
 * It fails if a conflict is not counted, or the fail point touches writes outside transactions.
 *
 * @tags: [requires_replica_set]
 */
const name = jsTestName();
db[name].drop();
assert.commandWorked(db[name].insert([{_id: 1}, {_id: 2}]));
const conflicts = () => assert.commandWorked(db.adminCommand({serverStatus: 1})).metrics.operation.writeConflicts;
function session() {
    const one = db.getMongo().startSession();
    return {one, coll: one.getDatabase(db.getName())[name]};
}

const [a, b] = [session(), session()];
const before = conflicts();
a.one.startTransaction();
assert.commandWorked(a.coll.update({_id: 1}, {$set: {a: 1}}));
b.one.startTransaction();
assert.commandFailedWithCode(b.coll.update({_id: 1}, {$set: {b: 1}}), ErrorCodes.WriteConflict);
b.one.abortTransaction_forTesting();
assert.eq(before + 1, conflicts());
assert.commandWorked(a.one.commitTransaction_forTesting());

const point = configureFailPoint(db, "WTWriteConflictException", {}, {times: 1});
assert.commandWorked(db[name].update({_id: 2}, {$set: {a: 2}}));
b.one.startTransaction();
const reply = b.coll.runCommand({update: name, updates: [{q: {_id: 2}, u: {$set: {b: 2}}}]});
assert.commandFailedWithCode(reply, ErrorCodes.WriteConflict);
assert.eq(["TransientTransactionError"], reply.errorLabels);
b.one.abortTransaction_forTesting();
point.off();
b.one.startTransaction();
assert.commandWorked(b.coll.update({_id: 2}, {$set: {b: 2}}));
assert.commandWorked(b.one.commitTransaction_forTesting());
assert.eq([{_id: 1, a: 1}, {_id: 2, a: 2, b: 2}], db[name].find().sort({_id: 1}).toArray());
[a, b].forEach(({one}) => one.endSession());
