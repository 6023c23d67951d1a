/**
 * Tests let a member deny its vote, delay its heartbeats and choose whom it follows.
 * It fails if a candidate wins with votes that a fail point denies, or if a member follows another than the one that it is told to.
 *
 * @tags: [requires_own_servers]
 */
import {configureFailPoint} from "jstests/libs/fail_point_util.js";

const rst = new ReplSetTest({nodes: 3});
rst.startSet();
rst.initiateWithHighElectionTimeout();
const primary = rst.getPrimary();
const [first, second] = rst.getSecondaries();
rst.awaitReplication();

const stepUp = (node) => node.adminCommand({replSetStepUp: 1});
for (const name of ["voteNoInElection", "voteYesInDryRunButNoInRealElection"]) {
    const points = [primary, second].map((node) => configureFailPoint(node, name));
    assert.commandFailed(stepUp(first));
    assert(!first.adminCommand({hello: 1}).isWritablePrimary);
    points.forEach((point) => point.wait());
    points.forEach((point) => point.off());
}
assert.soon(() => stepUp(first).ok, "with its votes the member leads");
rst.awaitNodesAgreeOnPrimary();

const source = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).syncSourceHost;
const others = [primary, second];
for (const wanted of [primary, first]) {
    const point = configureFailPoint(second, "forceSyncSourceCandidate", {hostAndPort: wanted.host});
    assert.soon(() => {
        assert.commandWorked(rst.getPrimary().getDB("test").c.insert({}));
        return source(second) === wanted.host;
    }, `the member does not follow ${wanted.host}`);
    point.off();
}

const delayed = configureFailPoint(second, "rsDelayHeartbeatResponse", {delay: 2});
delayed.wait();
delayed.off();
rst.stopSet();
