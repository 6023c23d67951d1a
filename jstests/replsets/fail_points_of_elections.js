/**
 * Tests hold a member before it gives up the lead, before it votes for itself, before it takes writes, and before it looks at a new
 * configuration, and look at the set meanwhile.
 * It fails if a point does not hold the member, or if the member does not go on when it is let go.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

// Whoever leads is decided by command.
const rst = startedSet(3, {settings: {electionTimeoutMillis: 60000}});
const first = rst.getPrimary();
assert.commandWorked(insert(first, [{_id: 0}], {w: 3, wtimeout: 60000}));
const leads = (node) => assert.commandWorked(node.adminCommand({hello: 1})).isWritablePrimary;
const state = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).myState;

// One that is to step down takes writes until it is let go.
const steps = configureFailPoint(first, "stepdownHangBeforeRSTLEnqueue");
const stepDown = startParallelShell(() => {
    assert.commandWorked(db.adminCommand({replSetStepDown: 60, secondaryCatchUpPeriodSecs: 30}));
}, first.port);
steps.wait();
assert.commandWorked(insert(first, [{_id: 1}], {w: 3, wtimeout: 60000}));
assert(leads(first));
steps.off();
stepDown();
const second = rst.getPrimary();
assert.neq(first.host, second.host);
const third = rst.nodes.find((node) => node !== first && node !== second);

// A candidate has not won before it has written down its own vote.
const wins = (node) => Number(assert.commandWorked(node.adminCommand({serverStatus: 1})).electionMetrics.stepUpCmd.successful);
const before = wins(third);
const votes = configureFailPoint(third, "hangInWritingLastVoteForDryRun");
const stands = () => {
    assert.soon(() => db.adminCommand({replSetStepUp: 1}).ok || db.hello().isWritablePrimary, "it is not elected", 120000);
};
rst.awaitReplication();
const standing = startParallelShell(stands, third.port);
votes.wait();
assert.eq(before, wins(third));
assert(!leads(third));
votes.off();
standing();
rst.awaitNodesAgreeOnPrimary(60000, rst.nodes, third);
rst.awaitReplication();

// One that has won leads, and takes no writes before it has gone through all of it.
const points = ["hangBeforeRSTLOnDrainComplete", "hangAfterReconfigOnDrainComplete"].map((name) => configureFailPoint(second, name));
const leading = startParallelShell(stands, second.port);
for (const point of points) {
    point.wait();
    assert.eq([1, false], [state(second), leads(second)], point.failPointName);
    assert.commandFailedWithCode(insert(second, [{_id: 2}]), ErrorCodes.NotWritablePrimary);
    point.off();
}
leading();
assert.soon(() => leads(second), "it takes no writes", 60000);
rst.awaitNodesAgreeOnPrimary(60000, rst.nodes, second);
assert.commandWorked(insert(second, [{_id: 3}], {w: 3, wtimeout: 60000}));

// A configuration is not in force before it was looked at, and no other is taken meanwhile.
const version = () => assert.commandWorked(second.adminCommand({replSetGetConfig: 1})).config.version;
const was = version();
const looks = configureFailPoint(second, "ReconfigHangBeforeConfigValidationCheck");
const change = () => {
    const config = assert.commandWorked(db.adminCommand({replSetGetConfig: 1})).config;
    config.version++;
    assert.commandWorked(db.adminCommand({replSetReconfig: config}));
};
const changing = startParallelShell(change, second.port);
looks.wait();
assert.eq(was, version());
const {config} = assert.commandWorked(second.adminCommand({replSetGetConfig: 1}));
config.version++;
assert.commandFailedWithCode(second.adminCommand({replSetReconfig: config}), ErrorCodes.ConfigurationInProgress);
looks.off();
changing();
assert.eq(was + 1, version());
rst.stopSet();
