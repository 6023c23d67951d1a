/**
 * A change of the configuration that waits for members holds up neither a step-down nor a forced configuration, which are made for members
 * that do not answer. It fails if those are refused meanwhile.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";
import {Thread} from "jstests/libs/parallelTester.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
const stopped = rst.getSecondaries();
stopped.forEach((s) => assert.commandWorked(s.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "alwaysOn"})));
assert.commandWorked(primary.getDB("d").c.insert({_id: 1}, {writeConcern: {w: 1}}));

/** A change of the configuration that has waited on this node for a second. */
function reconfiguring(node) {
    const config = rst.getReplSetConfigFromNode();
    config.version += 1;
    const waiting = new Thread((host, config) => {
        return new Mongo(host).adminCommand({replSetReconfig: config, maxTimeMS: 60000});
    }, node.host, config);
    waiting.start();
    sleep(1000);
    return [config, waiting];
}

const [config, waiting] = reconfiguring(primary);
const forced = Object.assign({}, config, {version: config.version + 1});
assert.commandWorked(primary.adminCommand({replSetReconfig: forced, force: true}));
stopped.forEach((s) => assert.commandWorked(s.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "off"})));
waiting.join();
// It was made for a configuration that is not in force any more.
assert.commandFailed(waiting.returnData());
assert.soon(() => rst.getReplSetConfigFromNode().version > config.version);

// A step-down by force, beside one that waits.
stopped.forEach((s) => assert.commandWorked(s.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "alwaysOn"})));
const leader = rst.getPrimary();
assert.commandWorked(leader.getDB("d").c.insert({_id: 2}, {writeConcern: {w: 1}}));
const [, again] = reconfiguring(leader);
assert.commandWorked(leader.adminCommand({replSetStepDown: 60, force: true}));
stopped.forEach((s) => assert.commandWorked(s.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "off"})));
again.join();
again.returnData();
rst.awaitNodesAgreeOnPrimary();
rst.stopSet();
