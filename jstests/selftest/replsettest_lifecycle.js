/**
 * A set of one starts, has a primary, and keeps its data over clean and unclean restarts.
 * It fails if startSet returns before the node answers, if initiate returns before there is a primary, or if a restart loses a write.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({ name: "lifecycle", nodes: 1, nodeOptions: { setParameter: { syncdelay: 44 } }, settings: { electionTimeoutMillis: 4000 } });
assert.eq(1, rst.startSet().length);
assert.eq(ErrorCodes.NotYetInitialized, rst.nodes[0].adminCommand({ replSetGetStatus: 1 }).code);
rst.initiate();

let primary = rst.getPrimary();
assert.eq(rst.nodes[0], primary);
assert.eq(`lifecycle/${getHostName()}:${primary.port}`, rst.getURL());
assert.eq(0, rst.getNodeId(primary));
assert.eq([], rst.getSecondaries());
assert.eq(44, primary.adminCommand({ getParameter: 1, syncdelay: 1 }).syncdelay);
const config = rst.getReplSetConfigFromNode();
assert.eq(["lifecycle", 1], [config._id, config.members.length]);
assert.eq(4000, config.settings.electionTimeoutMillis);

assert.commandWorked(primary.getDB("test").c.insert({ _id: 1 }, { writeConcern: { w: "majority" } }));
rst.awaitReplication();
rst.awaitLastOpCommitted();
rst.awaitSecondaryNodes();
rst.awaitNodesAgreeOnPrimary(undefined, rst.nodes, 0);
assert.eq(1, rst.findOplog(primary, { ns: "test.c", op: "i" }).itcount());
rst.waitForState(primary, ReplSetTest.State.PRIMARY);
assert.eq(ReplSetTest.State.PRIMARY, rst.status().myState);

const pid = primary.pid;
rst.restart(0);
primary = rst.getPrimary();
assert.neq(pid, primary.pid);
assert(!checkProgram(pid).alive);
assert.eq(44, primary.adminCommand({ getParameter: 1, syncdelay: 1 }).syncdelay, "the node's options hold over a restart");
assert.eq(1, primary.getDB("test").c.find().itcount());

assert.commandWorked(primary.getDB("test").c.insert({ _id: 2 }, { writeConcern: { w: "majority" } }));
rst.stop(0, 9, { allowedExitCode: MongoRunner.EXIT_SIGKILL });
rst.waitForState(0, ReplSetTest.State.DOWN);
rst.start(0, { setParameter: { ttlMonitorSleepSecs: 8 } }, true);
primary = rst.getPrimary();
assert.eq([1, 2], primary.getDB("test").c.find().sort({ _id: 1 }).toArray().map((d) => d._id));
const { syncdelay, ttlMonitorSleepSecs } = primary.adminCommand({ getParameter: 1, syncdelay: 1, ttlMonitorSleepSecs: 1 });
assert.eq([44, 8], [syncdelay, ttlMonitorSleepSecs], "parameters of a start join those of the node");

// The whole set, kept for another start.
rst.stopSet(undefined, true);
rst.startSet({}, true);
assert.eq(2, rst.getPrimary().getDB("test").c.find().itcount());
rst.stopSet();
assert.eq([], MongoRunner.runningChildPids());
