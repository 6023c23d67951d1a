/**
 * A node started for a set but not initiated knows its name only: it is no primary, and says what is missing.
 * It fails if such a node takes writes, calls itself primary or secondary, or answers with other codes.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({replSet: "waiting"});
const admin = conn.getDB("admin");

assert.commandFailedWithCode(admin.runCommand({replSetGetStatus: 1}), 94);
assert.commandFailedWithCode(admin.runCommand({replSetGetConfig: 1}), 94);
assert.commandFailedWithCode(admin.runCommand({replSetStepDown: 10, force: true}), [94, 10107]);
assert.commandFailedWithCode(admin.runCommand({replSetReconfig: {_id: "waiting", version: 2, members: []}}), 94);

const hello = assert.commandWorked(admin.runCommand({hello: 1}));
assert.eq(false, hello.isWritablePrimary);
assert.eq(false, hello.secondary);
assert.eq(true, hello.isreplicaset);
assert.eq("Does not have a valid replica set config", hello.info);
assert(!("setName" in hello) && !("hosts" in hello), tojson(hello));

// No writes but to `local`, no reads but there.
assert.commandFailedWithCode(conn.getDB("test").runCommand({insert: "c", documents: [{_id: 1}]}), 10107);
assert.commandFailedWithCode(conn.getDB("test").runCommand({find: "c"}), [13435, 13436]);
assert.commandWorked(conn.getDB("local").runCommand({insert: "note", documents: [{_id: 1}]}));
conn.setSecondaryOk();
assert.eq(1, conn.getDB("local").note.find().itcount());

// Initiating it ends all that.
assert.commandWorked(admin.runCommand({replSetInitiate: {_id: "waiting", members: [{_id: 0, host: conn.host}]}}));
assert.soon(() => admin.runCommand({hello: 1}).isWritablePrimary);
assert.commandWorked(conn.getDB("test").c.insert({_id: 1}));
assert.eq(1, conn.getDB("local").note.find().itcount());
assert.eq("waiting", admin.runCommand({hello: 1}).setName);
MongoRunner.stopMongod(conn);

// A node that was not started for a set is told so.
const alone = MongoRunner.runMongod({});
assert.commandFailedWithCode(alone.adminCommand({replSetGetStatus: 1}), 76);
assert.commandFailedWithCode(alone.adminCommand({replSetInitiate: {}}), 76);
assert.commandFailedWithCode(alone.adminCommand({replSetGetConfig: 1}), 76);
assert(!("setName" in alone.adminCommand({hello: 1})));
assert.eq(true, alone.adminCommand({hello: 1}).isWritablePrimary);
MongoRunner.stopMongod(alone);
