/**
 * Servers started for tests have commands of their own, which tests of timing are built upon.
 * Fails when sleep returns early or cannot be interrupted, or an insert that names its own _id order is lost.
 *
 * @tags: [
 *   # Routers do not have all of them.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const begin = Date.now();
assert.commandWorked(db.adminCommand({sleep: 1, millis: 300}));
assert.lte(290, Date.now() - begin);

// A sleep is an operation like any other: it ends with its time limit or when it is killed.
const limited = Date.now();
assert.commandFailedWithCode(db.adminCommand({sleep: 1, millis: 60 * 1000, maxTimeMS: 200}), ErrorCodes.MaxTimeMSExpired);
assert.lt(Date.now() - limited, 20 * 1000);

const marker = "test_commands " + ObjectId();
const shell = startParallelShell(`
    assert.commandFailedWithCode(db.adminCommand({sleep: 1, millis: 20 * 1000, comment: "${marker}"}), ErrorCodes.Interrupted);
`, db.getMongo().port);
let op;
assert.soon(() => {
    op = assert.commandWorked(db.adminCommand({currentOp: 1, "command.comment": marker, "command.sleep": 1})).inprog[0];
    return op !== undefined;
}, "the sleep is not shown", 15 * 1000);
assert.commandWorked(db.adminCommand({killOp: 1, op: op.opid}));
shell();
assert.lt(Date.now() - limited, 20 * 1000);

const coll = db.test_commands;
coll.drop();
assert.commandWorked(db.runCommand({godinsert: coll.getName(), obj: {_id: 1, a: 1}}));
assert.eq([{_id: 1, a: 1}], coll.find().toArray());

assert.commandWorked(db.adminCommand({logMessage: "test_commands"}));
assert.commandFailedWithCode(db.runCommand({sleep: 1, millis: 1}), ErrorCodes.Unauthorized);
assert.commandWorked(db.runCommand({planCacheClear: coll.getName()}));
assert.commandFailed(db.runCommand({planCacheClear: ""}));
