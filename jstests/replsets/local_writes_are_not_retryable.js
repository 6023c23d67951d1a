/**
 * What is written to `local` is a member's own, whatever number it bears: a repetition is another write, and the session stays where
 * the log has it.
 * It fails if such a write moves the session's number on, or is answered from another entry.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const [local, test] = ["local", "test"].map((name) => primary.getDB(name));
const lsid = {id: UUID()};
const numbered = (db, number, command) => db.runCommand(Object.assign(command, {lsid: lsid, txnNumber: NumberLong(number)}));
const counted = () => numbered(local, 6, {findAndModify: "c", query: {_id: 1}, update: {$inc: {n: 1}}, upsert: true, new: true});
assert.eq([1, 2], [counted(), counted()].map((reply) => assert.commandWorked(reply).value.n));
assert.commandWorked(numbered(test, 5, {insert: "c", documents: [{_id: 1}]}));
assert.commandFailedWithCode(numbered(test, 4, {insert: "c", documents: [{_id: 2}]}), ErrorCodes.TransactionTooOld);
rst.stopSet();
