/**
 * A member that is told to end by a signal lets its clients go first: hello refuses, says for how long the member still serves and wakes
 * those who wait for a change, while reads go on. A primary hands the lead over before.
 * It fails if the signal cuts clients off at once, if hello tells no time or nobody, or if the set waits for an election timeout.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 60000}});
let primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: 1}], {w: 3}));
const served = 3600 * 1000;
rst.nodes.forEach((node) => assert.commandWorked(
    node.adminCommand({setParameter: 1, shutdownTimeoutMillisForSignaledShutdown: served})));
assert.commandFailedWithCode(
    primary.adminCommand({setParameter: 1, shutdownTimeoutMillisForSignaledShutdown: -1}), ErrorCodes.BadValue);

function leavesInPeace(node) {
    const before = assert.commandWorked(node.adminCommand({hello: 1})).topologyVersion;
    const told = startParallelShell(() => {
        let reply, version = db.adminCommand({hello: 1}).topologyVersion;
        do {
            reply = db.adminCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: NumberLong(600000)});
            version = reply.topologyVersion;
        } while (reply.ok);
        assert.commandFailedWithCode(reply, ErrorCodes.ShutdownInProgress);
    }, node.port);
    assert.soon(() => node.adminCommand({serverStatus: 1}).connections.awaitingTopologyChanges > 0);
    rst.stop(node, 15, {}, {waitpid: false});
    told();
    const reply = assert.commandFailedWithCode(node.adminCommand({hello: 1}), ErrorCodes.ShutdownInProgress);
    assert(reply.remainingQuiesceTimeMillis instanceof NumberLong, tojson(reply));
    assert.between(1, Number(reply.remainingQuiesceTimeMillis), served);
    assert.gt(reply.topologyVersion.counter, before.counter);
    assert.eq(before.processId, reply.topologyVersion.processId);
    const again = {hello: 1, topologyVersion: reply.topologyVersion, maxAwaitTimeMS: NumberLong(3600 * 1000)};
    assert.commandFailedWithCode(node.adminCommand(again), ErrorCodes.ShutdownInProgress, "nothing more can change");
    assert.eq([{_id: 1}], held(node));
}

leavesInPeace(rst.getSecondary());
const old = primary;
leavesInPeace(old);
const last = rst.nodes.find((node) => node.adminCommand({hello: 1}).ok === 1);
assert.soon(() => last.adminCommand({hello: 1}).isWritablePrimary, "nobody has taken over", 30000);
// Those that go follow as long as they serve. A second signal ends them.
assert.commandWorked(insert(last, [{_id: 2}], {w: 3, wtimeout: 60000}));
rst.nodes.filter((node) => node !== last).forEach((node) => rst.stop(node, 15));
assert.commandWorked(last.adminCommand({setParameter: 1, shutdownTimeoutMillisForSignaledShutdown: 0}));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
