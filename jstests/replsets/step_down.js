/**
 * A primary steps down when told to and comes back after the time it was given, since nobody else can take over.
 * It fails if it steps down unforced without a successor, keeps taking writes, or never becomes primary again.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const node = rst.getPrimary();
const admin = node.getDB("admin");
const coll = node.getDB("test").c;
assert.commandWorked(coll.insert({_id: 1}));

// Without force nobody could take over.
let reply = admin.runCommand({replSetStepDown: 5, secondaryCatchUpPeriodSecs: 1});
assert.commandFailedWithCode(reply, 262);
assert(reply.errmsg.includes("No electable secondaries caught up"), tojson(reply));
assert.eq(true, admin.runCommand({hello: 1}).isWritablePrimary);

// Arguments.
assert.commandFailedWithCode(admin.runCommand({replSetStepDown: -1, force: true}), 2);
assert.commandFailedWithCode(admin.runCommand({replSetStepDown: 5, secondaryCatchUpPeriodSecs: -1}), 2);
assert.commandFailedWithCode(admin.runCommand({replSetStepDown: 5, secondaryCatchUpPeriodSecs: 10}), 2);
assert.commandFailedWithCode(node.getDB("test").runCommand({replSetStepDown: 5, force: true}), 13);

// Forced.
const open = assert.commandWorked(node.getDB("test").runCommand({find: "c", batchSize: 0})).cursor;
const counter = admin.runCommand({hello: 1}).topologyVersion.counter;
assert.commandWorked(admin.runCommand({replSetStepDown: 4, force: true}));
let hello = assert.commandWorked(admin.runCommand({hello: 1}));
assert.eq(false, hello.isWritablePrimary);
assert.eq(true, hello.secondary);
assert(!("primary" in hello) && !("electionId" in hello), tojson(hello));
assert.gt(bsonWoCompare({c: hello.topologyVersion.counter}, {c: counter}), 0);
assert.eq(2, admin.runCommand({replSetGetStatus: 1}).myState);
assert.eq("SECONDARY", admin.runCommand({replSetGetStatus: 1}).members[0].stateStr);

reply = node.getDB("test").runCommand({insert: "c", documents: [{_id: 2}]});
assert.commandFailedWithCode(reply, 10107);
assert.eq("NotWritablePrimary", reply.codeName);
assert.commandFailedWithCode(node.getDB("test").runCommand({create: "d"}), 10107);
assert.commandFailedWithCode(node.getDB("test").runCommand({find: "c", $readPreference: {mode: "primary"}}), [13435]);
reply = assert.commandWorked(node.getDB("test").runCommand({find: "c", $readPreference: {mode: "secondary"}}));
assert.eq([1], reply.cursor.firstBatch.map((d) => d._id));
assert.commandFailedWithCode(admin.runCommand({replSetStepDown: 5, force: true}), 10107);

// A retryable write gets the label that makes drivers try again.
reply = node.getDB("test").runCommand(
    {insert: "c", documents: [{_id: 2}], lsid: {id: UUID()}, txnNumber: NumberLong(1)});
assert.commandFailedWithCode(reply, 10107);
assert.contains("RetryableWriteError", reply.errorLabels || [], tojson(reply));

// Back after the time.
assert.soon(() => admin.runCommand({hello: 1}).isWritablePrimary, "it never came back", 30 * 1000);
assert.commandWorked(coll.insert({_id: 2}));
assert.commandWorked(node.getDB("test").runCommand({getMore: open.id, collection: "c"}));
assert.eq(2, coll.find().itcount());

// Asked to step up it does not wait.
assert.commandWorked(admin.runCommand({replSetStepDown: 3600, force: true}));
assert.commandFailedWithCode(coll.insert({_id: 3}), 10107);
assert.commandWorked(admin.runCommand({replSetFreeze: 0}));
assert.soon(() => admin.runCommand({hello: 1}).isWritablePrimary, "not primary after thawing", 30 * 1000);
assert.commandWorked(coll.insert({_id: 3}));
rst.stopSet();
