/**
 * A node of no set replicates nothing, so a collection may go from and to the database that is never replicated.
 * Fails if it is refused there.
 *
 * @tags: [requires_standalone]
 */
const from = db.rename_into_local.getFullName();
db.rename_into_local.drop();
assert.commandWorked(db.rename_into_local.insert({_id: 1}));
const local = db.getSiblingDB("local");
assert.commandWorked(db.adminCommand({renameCollection: from, to: "local.rename_into_local", dropTarget: true}));
assert.eq([{_id: 1}], local.rename_into_local.find().toArray());
assert.eq(0, db.rename_into_local.count());
assert.commandWorked(db.adminCommand({renameCollection: "local.rename_into_local", to: from}));
assert.eq([{_id: 1}], db.rename_into_local.find().toArray());
// What is called as a log of operations would be taken for one.
for (const to of ["local.oplog.rs", "local.oplog.other"]) {
    assert.commandFailedWithCode(db.adminCommand({renameCollection: from, to}), ErrorCodes.IllegalOperation);
}
