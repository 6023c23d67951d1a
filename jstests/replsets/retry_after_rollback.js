/**
 * Statements of a retryable write that a rollback has taken back are executed when they come again, and those that stayed
 * are not. It fails if a statement counts twice, or is taken for executed although it is gone.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const oldId = rst.getNodeId(old);
const others = rst.getSecondaries();
const lsid = {id: UUID()};
const increment = (stmtId) => ({
    update: "c", updates: [{q: {_id: 1}, u: {$inc: {["n" + stmtId]: 1}}}], lsid: lsid, txnNumber: NumberLong(1), stmtIds: [NumberInt(stmtId)]
});
const run = (node, stmtId, w) => assert.commandWorked(node.getDB("test").runCommand(Object.assign(increment(stmtId), {writeConcern: w})));
assert.commandWorked(old.getDB("test").c.insert({_id: 1}, {writeConcern: {w: 3}}));
run(old, 0, {w: 3, wtimeout: 20000});
run(old, 1, {w: 3, wtimeout: 20000});
holdBehind(old, others, "d");
run(old, 2, {w: 1});
rst.stop(oldId, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
others.forEach(letGo);
const primary = rst.getPrimary();
for (const stmtId of [0, 1, 2]) {
    run(primary, stmtId, {w: "majority", wtimeout: 20000});
}
rst.start(oldId, {}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq([{_id: 1, n0: 1, n1: 1, n2: 1}], held(rst.nodes[oldId]));
// What came back by rollback knows all of them as primary too.
rst.stepUp(rst.nodes[oldId]);
[0, 1, 2].forEach((stmtId) => run(rst.nodes[oldId], stmtId, {w: 1}));
assert.eq([{_id: 1, n0: 1, n1: 1, n2: 1}], held(rst.nodes[oldId]));
rst.stopSet();
