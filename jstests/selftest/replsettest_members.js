/**
 * A set has as many members as it was asked for, and each form of asking is understood.
 * It fails if a ReplSetTest quietly makes a smaller set than it was asked for.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({ nodes: 3 });
assert.eq(3, rst.startSet().length);
rst.initiate();
assert.eq(3, rst.getPrimary().adminCommand({ hello: 1 }).hosts.length);
rst.stopSet();

assert.throws(() => new ReplSetTest({ nodes: 1, keyFile: "jstests/libs/key1" }));

// The forms of `nodes`.
assert.eq(1, new ReplSetTest({}).ports.length);
assert.eq(2, new ReplSetTest({ nodes: [{ rsConfig: { priority: 0 } }, {}] }).ports.length);
const named = new ReplSetTest({ nodes: { n0: { oplogSize: 5 }, n1: {} }, nodeOptions: { syncdelay: 3 } });
assert.eq([5, 3], [named.nodeOptions.n0.oplogSize, named.nodeOptions.n0.syncdelay]);
assert.eq(3, named.nodeOptions.n1.syncdelay);
assert.eq(0, new ReplSetTest({ nodes: [{ rsConfig: { priority: 0 } }] }).getReplSetConfig().members[0].priority);

// A further node: started, forgotten and stopped again.
const grown = new ReplSetTest({ nodes: 1 });
grown.startSet();
grown.initiate();
const added = grown.add({ syncdelay: 7 });
assert.eq([2, 1], [grown.nodes.length, added.nodeId]);
assert.eq(added.port, grown.getPort(1));
assert.commandFailedWithCode(added.adminCommand({ replSetGetStatus: 1 }), ErrorCodes.NotYetInitialized);
grown.remove(1);
assert(!checkProgram(added.pid).alive);
assert.eq([1, 1], [grown.nodes.length, grown.ports.length]);
ReplSetTest.awaitRSClientHosts(grown.getPrimary(), grown.getPrimary().host, { ok: true, ismaster: true });
ReplSetTest.awaitRSClientHosts(grown.getPrimary(), added.host, { ok: false });
grown.stopSet();
