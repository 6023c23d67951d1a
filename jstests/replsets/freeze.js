/**
 * A frozen member does not seek election; a primary cannot be frozen, and zero thaws.
 * It fails if a frozen member elects itself, or a primary takes the command as if it would obey.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const admin = rst.getPrimary().getDB("admin");
const isPrimary = () => admin.runCommand({hello: 1}).isWritablePrimary;

let reply = admin.runCommand({replSetFreeze: 10});
assert.commandFailedWithCode(reply, 95);
assert.eq("NotSecondary", reply.codeName);
assert(isPrimary());

// Frozen for longer than the step-down: not primary when that is over.
assert.commandWorked(admin.runCommand({replSetStepDown: 1, force: true}));
reply = assert.commandWorked(admin.runCommand({replSetFreeze: 6}));
sleep(3000);
assert(!isPrimary());
assert.soon(isPrimary, "not primary when the freeze is over", 30 * 1000);

// Thawed: at once.
assert.commandWorked(admin.runCommand({replSetStepDown: 1, force: true}));
assert.commandWorked(admin.runCommand({replSetFreeze: 3600}));
sleep(1500);
assert(!isPrimary());
reply = assert.commandWorked(admin.runCommand({replSetFreeze: 0}));
assert.eq("unfreezing", reply.info);
assert.soon(isPrimary, "not primary after thawing", 30 * 1000);

// Other commands of secondaries and their answers here.
assert.commandFailedWithCode(admin.runCommand({replSetSyncFrom: "localhost:1"}), 95);
assert.commandFailedWithCode(admin.runCommand({replSetMaintenance: 1}), 95);
assert.commandWorked(admin.runCommand({replSetGetRBID: 1}));
assert.commandFailedWithCode(rst.getPrimary().getDB("test").runCommand({replSetFreeze: 1}), 13);
rst.stopSet();
