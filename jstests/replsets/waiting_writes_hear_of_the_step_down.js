/**
 * A write that waits for members when its primary steps down is told so at once, and a driver that it may send it once more.
 * It fails if it waits on, if it is acknowledged, or if its driver takes that for the end of a retryable write.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
assert.commandWorked(insert(primary, [{_id: 0}], {w: 2, wtimeout: 20000}));
hold(secondary);
assert.commandWorked(insert(primary, [{_id: "on its way"}]));
const join = startParallelShell(() => {
    const began = Date.now();
    const retryable = {lsid: {id: UUID()}, txnNumber: NumberLong(1)};
    const command = {insert: "c", documents: [{_id: 1}], writeConcern: {w: 2, wtimeout: 60000}};
    const reply = db.getSiblingDB("test").runCommand(Object.assign(command, retryable));
    const code = reply.ok ? reply.writeConcernError.code : reply.code;
    assert([189, 11602, 11600, 10107, 91].includes(code), tojson(reply));
    assert.eq(["RetryableWriteError"], reply.errorLabels, tojson(reply));
    assert.lt(Date.now() - began, 15000);
}, primary.port);
assert.soon(() => primary.getDB("test").c.find({_id: 1}).itcount() === 1);
assert.commandWorked(primary.adminCommand({replSetStepDown: 30, secondaryCatchUpPeriodSecs: 0, force: true}));
join();
letGo(secondary);
rst.awaitNodesAgreeOnPrimary(30000, rst.nodes, secondary);
rst.stopSet();
