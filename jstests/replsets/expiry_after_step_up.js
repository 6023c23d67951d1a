/**
 * Documents expire on whichever member leads, and only there: the next primary goes on with it.
 * It fails if the new primary lets documents stay, or if the members differ in what has expired.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {more: {nodeOptions: {setParameter: {ttlMonitorSleepSecs: 1}}}});
const first = rst.getPrimary();
const next = rst.getSecondaries()[0];
const passes = (node) => Number(assert.commandWorked(node.adminCommand({serverStatus: 1})).metrics.ttl.passes);
assert.commandWorked(first.adminCommand({setParameter: 1, ttlMonitorEnabled: false}));
const old = new Date(0);
assert.commandWorked(insert(first, [{_id: "old", at: old}, {_id: "stays", at: new Date(Date.now() + 3600000)}], {w: 3}));
const index = {createIndexes: "c", indexes: [{key: {at: 1}, name: "at", expireAfterSeconds: 0}], writeConcern: {w: 3}};
assert.commandWorked(first.getDB("test").runCommand(index));
assert.eq(2, held(next).length);

rst.stepUp(next);
rst.awaitNodesAgreeOnPrimary(60000, rst.nodes, next);
assert.soon(() => held(next).length === 1);
rst.awaitReplication();
rst.nodes.forEach((node) => assert.eq(["stays"], held(node).map((d) => d._id), node.host));
const before = passes(first);
const leads = passes(next);
assert.soon(() => passes(next) > leads + 1);
assert.eq(before, passes(first), "a secondary looks for what has expired");
rst.checkReplicatedDataHashes();
rst.stopSet();
