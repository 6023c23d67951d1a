/**
 * Fixtures set fail points on every member, and tests hold a member at the places that others name.
 * It fails if a point is refused, does not act, or acts on after it was turned off.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
assert.commandWorked(insert(primary, [{_id: 0}], {w: 2}));

// What fixtures set on every member.
for (const node of [primary, secondary]) {
    configureFailPoint(node, "forceHeartbeatIntervalMS", {intervalMS: 200}).wait();
    configureFailPoint(node, "setSmallOplogGetMoreMaxTimeMS");
    configureFailPoint(node, "disableMaxSyncSourceLagSecs");
    configureFailPoint(node, "forceBgSyncSyncSourceRetryWaitMS", {sleepMS: 50});
}
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));

// A linearizable read that is held ends with its time; afterwards it goes through.
const linearizable = (more) => primary.getDB("test").runCommand(Object.assign({find: "c", readConcern: {level: "linearizable"}}, more));
const read = configureFailPoint(primary, "hangBeforeLinearizableReadConcern");
assert.commandFailedWithCode(linearizable({maxTimeMS: 500}), ErrorCodes.MaxTimeMSExpired);
read.wait();
read.off();
assert.commandWorked(linearizable());

// A client that waits for a change of the set is seen to wait.
const version = assert.commandWorked(secondary.adminCommand({hello: 1})).topologyVersion;
const points = ["waitForHelloResponse", "hangWhileWaitingForHelloResponse"].map((name) => configureFailPoint(secondary, name, {}, {times: 1}));
assert.commandWorked(secondary.adminCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: 10}));
points.forEach((point) => point.wait());

const refused = configureFailPoint(secondary, "setMaintenanceModeFailsWithNotSecondary");
assert.commandFailedWithCode(secondary.adminCommand({replSetMaintenance: 1}), ErrorCodes.NotSecondary);
refused.off();
assert.commandWorked(secondary.adminCommand({replSetMaintenance: 1}));
assert.commandWorked(secondary.adminCommand({replSetMaintenance: 0}));
rst.awaitSecondaryNodes();

// A member that is held before it fetches gets nothing.
const fetcher = configureFailPoint(secondary, "hangBeforeStartingOplogFetcher");
assert.commandWorked(secondary.adminCommand({replSetSyncFrom: primary.host}));
assert.commandWorked(insert(primary, [{_id: "ends the batch"}]));
fetcher.wait();
assert.commandFailedWithCode(insert(primary, [{_id: 2}], {w: 2, wtimeout: 500}), ErrorCodes.WriteConcernFailed);
fetcher.off();
assert.commandWorked(insert(primary, [{_id: 3}], {w: 2}));

// A batch that has come waits.
const batch = configureFailPoint(secondary, "hangBeforeProcessingSuccessfulBatch");
assert.commandWorked(insert(primary, [{_id: "waits"}]));
batch.wait();
assert.commandFailedWithCode(insert(primary, [{_id: 4}], {w: 2, wtimeout: 500}), ErrorCodes.WriteConcernFailed);
batch.off();
assert.commandWorked(insert(primary, [{_id: 5}], {w: 2}));

// A first copy is held, and two attempts fail when they are let go.
const copying = ["initialSyncHangBeforeCompletingOplogFetching", "failAndHangInitialSync", "failInitialSyncBeforeApplyingBatch"];
const added = rst.add({setParameter: Object.fromEntries(copying.map((name) => ["failpoint." + name, tojson({mode: "alwaysOn"})]))});
assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: 2, host: added.host, votes: 0, priority: 0})));
for (const name of copying) {
    assert.commandWorked(added.adminCommand({waitForFailPoint: name, timesEntered: 1, maxTimeMS: 60 * 1000}));
    assert.eq(5, assert.commandWorked(added.adminCommand({replSetGetStatus: 1})).myState, name);
    assert.commandWorked(added.adminCommand({configureFailPoint: name, mode: "off"}));
}
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq(held(primary).length, held(added).length);
assert.gte(assert.commandWorked(added.adminCommand({serverStatus: 1})).metrics.repl.initialSync.failedAttempts, 2);

// A configuration that comes by a heartbeat is not installed meanwhile.
const known = () => assert.commandWorked(added.adminCommand({replSetGetConfig: 1})).config.version;
const wanted = () => assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config.version;
assert.soon(() => known() === wanted());
const blocked = configureFailPoint(added, "blockHeartbeatReconfigFinish");
assert.commandWorked(reconfig(rst, (config) => config.members[2].tags = {dc: "east"}));
blocked.wait();
assert.lt(known(), wanted());
blocked.off();
assert.soon(() => known() === wanted());
rst.stopSet();
