/**
 * A primary that was made to step down comes back when it is asked to, and an outsider's ReplSetTest sees the same set.
 * It fails if getPrimary names a node that takes no writes, or if stepUp returns before it does.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({ nodes: 1 });
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();

assert.commandWorked(primary.adminCommand({ replSetStepDown: 600, force: true }));
rst.waitForState(primary, ReplSetTest.State.SECONDARY);
assert.eq(false, rst.callHello());
assert.commandFailedWithCode(primary.getDB("test").runCommand({ insert: "c", documents: [{}] }), ErrorCodes.NotWritablePrimary);
rst.freeze(0, 0);
rst.stepUp(primary);
assert.commandWorked(primary.getDB("test").c.insert({ _id: 1 }));

const other = new ReplSetTest(primary.host);
assert.eq(rst.getURL(), other.getURL());
assert.eq(primary.host, other.getPrimary().host);
assert.eq(1, other.getPrimary().getDB("test").c.find().itcount());

const throughSet = new Mongo(rst.getURL());
assert(throughSet.isReplicaSetConnection());
assert.eq(1, throughSet.getDB("test").c.find().itcount());
rst.stopSet();
