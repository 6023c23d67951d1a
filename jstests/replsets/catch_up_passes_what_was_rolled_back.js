/**
 * A new primary catches up with what others have. One of them had more when it was last heard of, and has taken it back since: what it
 * says now counts.
 * It fails if the new primary looks for the entries that were taken back, and never takes a write.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {catchUpTimeoutMillis: -1}});
const old = rst.getPrimary();
const oldId = rst.getNodeId(old);
const [next, last] = rst.getSecondaries();
// The keys for signing come by themselves, a moment after the first election; one member must not have more of them than the other.
assert.soon(() => old.getDB("admin").system.keys.countDocuments({}) >= 2);
assert.commandWorked(insert(old, [{_id: "kept"}], {w: 3}));
const held_up = [next, last].map((node) => configureFailPoint(node, "stopReplProducer"));
assert.commandWorked(insert(old, [{_id: "lost"}], {w: 1, j: true}));
const isTold = (node) => tojson(row(node, old).optime) === tojson(row(old, old).optime);
assert.soon(() => [next, last].every(isTold));
assert.commandWorked(last.adminCommand({replSetFreeze: 3600}));
rst.stop(oldId, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
const leads = (node) => assert.soon(() => node.adminCommand({replSetStepUp: 1}).ok && node.adminCommand({hello: 1}).isWritablePrimary);
leads(next);

// It takes back what nobody else has, and has nothing of the new term, while the last one hears nothing of it.
const back = rst.restart(oldId, {setParameter: {
    "failpoint.rsDelayHeartbeatResponse": tojson({mode: "alwaysOn", data: {delay: 3600}}),
    "failpoint.stopReplProducerOnDocument": tojson({mode: "alwaysOn", data: {document: {"o.msg": "new primary"}}}),
}});
assert.soonNoExcept(() => held(back).length === 1, "nothing is taken back");
assert.commandWorked(back.adminCommand({replSetFreeze: 3600}));
rst.stop(next, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
assert.commandWorked(back.adminCommand({configureFailPoint: "rsDelayHeartbeatResponse", mode: "off"}));
held_up[1].off();
leads(last);
assert.commandWorked(back.adminCommand({configureFailPoint: "stopReplProducerOnDocument", mode: "off"}));
assert.commandWorked(insert(last, [{_id: "new"}], {w: 2, wtimeout: 60000}));
assert.eq([{_id: "kept"}, {_id: "new"}], held(back));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
