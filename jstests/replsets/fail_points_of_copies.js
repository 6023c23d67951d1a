/**
 * Tests hold a member in the middle of its first copy, or before it takes an entry, and look at the set meanwhile.
 * It fails if a point does not hold the member, the member goes on before it is let go, or something is missing afterwards.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const primary = rst.getPrimary();
const secondary = rst.getSecondary();
assert.commandWorked(insert(primary, [{_id: 0}], {w: 2}));

// An entry that matches is not taken, nor is any after it.
const stopped = configureFailPoint(secondary, "stopReplProducerOnDocument", {document: {op: "i", "o._id": 2}});
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));
assert.commandWorked(insert(primary, [{_id: 2}]));
stopped.wait();
const late = insert(primary, [{_id: 3}], {w: 2, wtimeout: 500});
assert.commandFailedWithCode(late, ErrorCodes.WriteConcernFailed);
assert.eq([0, 1], held(secondary).map((d) => d._id));
stopped.off();
assert.commandWorked(insert(primary, [{_id: 4}], {w: 2}));
assert.eq([0, 1, 2, 3, 4], held(secondary).map((d) => d._id));

// What is written while a member is held in its first copy is there when it has ended.
const before = ["BeforeChoosingSyncSource", "BeforeCreatingOplog", "AfterGettingBeginFetchingTimestamp", "BeforeSplittingControlFlow", "BeforeCopyingDatabases"];
const inCollections = ["DuringCollectionClone", "CollectionClonerAfterHandlingBatchResponse"];
const after = ["AfterDataCloning", "BeforeFinish"];
const named = (names) => names.map((name) => "initialSyncHang" + name);
const namespace = "test.c";
const parameters = Object.fromEntries([
    ...named([...before, ...after]).map((point) => ["failpoint." + point, tojson({mode: "alwaysOn"})]),
    ["failpoint.initialSyncHangDuringCollectionClone", tojson({mode: "alwaysOn", data: {namespace, numDocsToClone: 1}})],
    ["failpoint.initialSyncHangCollectionClonerAfterHandlingBatchResponse", tojson({mode: "alwaysOn", data: {nss: namespace}})],
]);
const added = rst.add({setParameter: parameters});
assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: 2, host: added.host, votes: 0, priority: 0})));
const points = named([...before, ...inCollections, ...after]);
for (const [i, point] of points.entries()) {
    const reached = {waitForFailPoint: point, timesEntered: 1, maxTimeMS: 60 * 1000};
    assert.commandWorked(added.adminCommand(reached));
    assert.eq(5, assert.commandWorked(added.adminCommand({replSetGetStatus: 1})).myState, point);
    assert.commandWorked(insert(primary, [{_id: 10 + i}]));
    assert.commandWorked(added.adminCommand({configureFailPoint: point, mode: "off"}));
}
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq([0, 1, 2, 3, 4, ...points.map((_, i) => 10 + i)], held(added).map((d) => d._id));
rst.stopSet();
