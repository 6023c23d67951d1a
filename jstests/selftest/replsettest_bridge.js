/**
 * With useBridge every member stands behind a proxy by which a test cuts it off, in both directions or one, and delays or loses what is sent to it.
 * It fails if a member can reach another that rejects it, if cutting two apart separates a third, or if a rule outlives its end.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({ nodes: 3, useBridge: true, settings: { electionTimeoutMillis: 2000, heartbeatIntervalMillis: 200 } });
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const [first, second] = rst.getSecondaries();
assert.eq(rst.nodeList(), rst.getReplSetConfigFromNode().members.map((member) => member.host));
assert.neq(primary.port, primary.ownPort);
assert.eq(`${getHostName()}:${primary.ownPort}`, primary.dest);
assert.eq(primary.host, primary.adminCommand({ hello: 1 }).me, "a member knows itself by its bridge");

const coll = primary.getDB("test").replsettest_bridge;
const insert = (conn, doc, writeConcern) => conn.getDB("test").runCommand({ insert: coll.getName(), documents: [doc], writeConcern });
assert.commandWorked(insert(primary, { _id: 0 }, { w: 3 }));

jsTest.log("One direction, one pair: the first secondary asks the others in vain, and the second replicates all the same.");
primary.rejectConnectionsFrom(first);
second.rejectConnectionsFrom([first]);
assert.commandWorked(insert(primary, { _id: 1 }, { w: 2 }));
assert.commandFailedWithCode(insert(primary, { _id: 2 }, { w: 3, wtimeout: 500 }), ErrorCodes.WriteConcernFailed);
primary.acceptConnectionsFrom(first);
second.acceptConnectionsFrom(first);
assert.commandWorked(insert(rst.getPrimary(), { _id: 3 }, { w: 3 }));

jsTest.log("Requests that come late: a secondary whose requests take half a second finds the others far away.");
const leader = rst.getPrimary();
const [slow, other] = rst.getSecondaries();
const ping = () => assert.commandWorked(slow.adminCommand({ replSetGetStatus: 1 })).members.find((m) => m.name === leader.host).pingMs;
[leader, other].forEach((node) => node.delayMessagesFrom(slow, 500));
assert.soon(() => Number(ping()) >= 100, () => "nothing was delayed: " + ping());
assert.commandWorked(insert(rst.getPrimary(), { _id: 4 }, { w: 3 }));
[leader, other].forEach((node) => node.delayMessagesFrom(slow, 0));

jsTest.log("Requests that are lost.");
leader.discardMessagesFrom(slow, 1.0);
other.discardMessagesFrom(slow, 1.0);
const waited = (conn) => insert(conn, { _id: new ObjectId() }, { w: 3, wtimeout: 500 });
assert.soon(() => waited(leader).writeConcernError?.code === ErrorCodes.WriteConcernFailed, "a member that hears nothing takes part");
leader.discardMessagesFrom(slow, 0);
other.acceptConnectionsFrom(slow);
assert.soon(() => waited(rst.getPrimary()).writeConcernError === undefined);

jsTest.log("A primary that is cut off gives up, and another leads.");
rst.awaitNodesAgreeOnPrimary();
const old = rst.getPrimary();
old.setSecondaryOk();
const others = rst.getSecondaries();
old.disconnect(others);
assert.soon(() => others.some((node) => node.adminCommand({ hello: 1 }).isWritablePrimary), "no other member leads");
assert.soon(() => !old.adminCommand({ hello: 1 }).isWritablePrimary, "the member that is alone still leads");
const next = others.find((node) => node.adminCommand({ hello: 1 }).isWritablePrimary);
assert.commandWorked(insert(next, { _id: "without it" }, { w: 2 }));
assert.eq(null, old.getDB("test").replsettest_bridge.findOne({ _id: "without it" }));
old.reconnect(others);
rst.awaitNodesAgreeOnPrimary();
rst.awaitReplication();
assert.neq(null, old.getDB("test").replsettest_bridge.findOne({ _id: "without it" }));

jsTest.log("The bridge stays when its member is started again.");
const restarted = rst.restart(rst.getSecondaries()[0]);
rst.awaitSecondaryNodes();
rst.getPrimary().disconnect(restarted);
rst.getPrimary().reconnect(restarted);
rst.awaitReplication();

assert.commandFailedWithCode(
    restarted.adminCommand({ discardMessagesFrom: 1, $forBridge: true, host: "h:1", loss: 2 }), ErrorCodes.BadValue);
assert.throws(() => restarted.disconnect(new Mongo(`${getHostName()}:${restarted.ownPort}`)));
const pids = rst.nodes.map((node) => node.bridge.pid);
rst.stopSet();
assert.eq([false, false, false], pids.map((pid) => checkProgram(pid).alive));
