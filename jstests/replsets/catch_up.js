/**
 * A member that wins an election first fetches what a reachable minority has: entries acknowledged with less than a majority are
 * not rolled back for nothing. catchUpTimeoutMillis and replSetAbortPrimaryCatchUp end that.
 * It fails if such an entry is lost although its member was there, if the new primary takes writes before, if nothing ends it,
 * or if replSetGetStatus does not say what was fetched.
 *
 * @tags: [requires_own_servers]
 */
import {byPosition} from "jstests/replsets/libs/members.js";

const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 3000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();

function failPoint(node, mode) {
    assert.commandWorked(node.adminCommand({configureFailPoint: "stopReplProducer", mode}));
}
/** The primary has a document that nobody else has, and the first of the others has been elected. */
function leaveBehind(id) {
    const old = rst.getPrimary();
    rst.awaitReplication();
    const held = rst.nodes.filter((node) => node.host !== old.host);
    held.forEach((node) => failPoint(node, "alwaysOn"));
    // What they are waiting for ends with the next entry.
    assert.commandWorked(old.getDB("test").runCommand({insert: "c", documents: [{_id: id + "-seen"}], writeConcern: {w: 1}}));
    sleep(1000);
    assert.commandWorked(old.getDB("test").runCommand({insert: "c", documents: [{_id: id}], writeConcern: {w: 1}}));
    const others = byPosition(held);
    const stand = (host) => {
        const node = new Mongo(host);
        const won = () => Number(assert.commandWorked(node.adminCommand({serverStatus: 1})).electionMetrics.stepUpCmd.successful);
        const before = won();
        assert.soon(() => { node.adminCommand({replSetStepUp: 1}); return won() > before; }, "no election was won");
    };
    const standing = startParallelShell(funWithArgs(stand, others[0].host), rst.ports[0], true);
    return {old, others, standing};
}
function has(node, id) {
    node.setSecondaryOk();
    return node.getDB("test").c.find({_id: id}).itcount() === 1;
}
function settle(world) {
    world.others.forEach((node) => failPoint(node, "off"));
    world.standing();
    assert.soon(() => world.others[0].adminCommand({hello: 1}).isWritablePrimary);
    rst.awaitSecondaryNodes();
    rst.awaitReplication();
}

// It waits until it has what the old primary has.
let world = leaveBehind("kept");
const state = () => assert.commandWorked(world.others[0].adminCommand({replSetGetStatus: 1})).myState;
assert.soon(() => state() === 1, "it was not elected");
sleep(500);
let hello = world.others[0].adminCommand({hello: 1});
assert(!hello.isWritablePrimary, "it takes writes before it has caught up");
settle(world);
rst.nodes.forEach((node) => assert(has(node, "kept"), node.host));
const metrics = () => assert.commandWorked(world.others[0].adminCommand({serverStatus: 1})).electionMetrics;
assert.gte(metrics().numCatchUps, 1, tojson(metrics()));
assert.eq(metrics().numCatchUps, metrics().numCatchUpsSucceeded, tojson(metrics()));
const told = () => assert.commandWorked(world.others[0].adminCommand({replSetGetStatus: 1})).electionCandidateMetrics;
assert.eq(1, rs.compareOpTimes(told().targetCatchupOpTime, told().lastSeenOpTimeAtElection), tojson(told()));
assert.gte(rs.compareOpTimes(assert.commandWorked(world.old.adminCommand({replSetGetStatus: 1})).optimes.appliedOpTime, told().targetCatchupOpTime), 0);
assert.gte(Number(told().numCatchUpOps), 1, tojson(told()));
assert(told().numCatchUpOps instanceof NumberLong, tojson(told()));
assert.eq(Number(told().numCatchUpOps) / Number(metrics().numCatchUps), metrics().averageCatchUpOps, tojson(metrics()));
assert.eq(1, Number(metrics().stepUpCmd.successful), tojson(metrics()));
assert.gte(Number(metrics().stepUpCmd.called), 1, tojson(metrics()));

// It can be told to step down meanwhile.
world = leaveBehind("kept for the next");
assert.soon(() => state() === 1, "it was not elected");
assert.commandWorked(world.others[0].adminCommand({replSetStepDown: 60, force: true}));
assert.soon(() => state() === 2, "it goes on leading");
world.others.forEach((node) => failPoint(node, "off"));
world.standing();
rst.getPrimary();
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.commandWorked(world.others[0].adminCommand({replSetFreeze: 0}));

// A command ends it, and what was not fetched is rolled back.
world = leaveBehind("given up");
assert.commandFailedWithCode(world.old.adminCommand({replSetAbortPrimaryCatchUp: 1}), 20);
assert.soon(() => world.others[0].adminCommand({replSetAbortPrimaryCatchUp: 1}).ok === 1, "it does not catch up");
assert.soon(() => world.others[0].adminCommand({hello: 1}).isWritablePrimary, "it goes on catching up");
settle(world);
rst.nodes.forEach((node) => assert(!has(node, "given up"), node.host));
assert.gte(metrics().numCatchUpsFailedWithReplSetAbortPrimaryCatchUpCmd, 1, tojson(metrics()));

// So does its limit.
const config = assert.commandWorked(rst.getPrimary().adminCommand({replSetGetConfig: 1})).config;
config.version++;
config.settings.catchUpTimeoutMillis = 0;
assert.commandWorked(rst.getPrimary().adminCommand({replSetReconfig: config}));
rst.awaitReplication();
world = leaveBehind("too late");
assert.soon(() => world.others[0].adminCommand({hello: 1}).isWritablePrimary, "it catches up without time for it");
settle(world);
rst.nodes.forEach((node) => assert(!has(node, "too late"), node.host));
rst.checkReplicatedDataHashes();
rst.stopSet();
