/**
 * A read on a secondary that names a time waits until the secondary has everything up to it: a client reads its own writes, and a
 * snapshot of that time is whole.
 * It fails if it reads before, if it waits for more than that time, or if nothing ends the waiting.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
const before = assert.commandWorked(insert(primary, [{_id: 1}], {w: 2})).operationTime;
holdBehind(primary, [secondary], "other");
const reply = assert.commandWorked(insert(primary, [{_id: 2}]));
const after = reply.operationTime;
const read = (afterClusterTime, more = {}) => secondary.getDB("test").runCommand(Object.assign({
    find: "c", sort: {_id: 1}, readConcern: {afterClusterTime}, $readPreference: {mode: "secondary"}, $clusterTime: reply.$clusterTime,
}, more));
const ids = (found) => assert.commandWorked(found).cursor.firstBatch.map((d) => d._id);

assert.eq([1], ids(read(before)));
const moment = {level: "snapshot", atClusterTime: after};
for (const readConcern of [{afterClusterTime: after}, moment]) {
    assert.commandFailedWithCode(read(after, {readConcern, maxTimeMS: 300}), ErrorCodes.MaxTimeMSExpired);
}
const join = startParallelShell(funWithArgs((after, clusterTime) => {
    const found = assert.commandWorked(db.runCommand({
        find: "c", sort: {_id: 1}, readConcern: {afterClusterTime: after}, $readPreference: {mode: "secondary"}, $clusterTime: clusterTime,
    }));
    assert.eq([1, 2], found.cursor.firstBatch.map((d) => d._id));
}, after, reply.$clusterTime), secondary.port);
const waits = () => secondary.getDB("admin").runCommand({
    aggregate: 1, pipeline: [{$currentOp: {}}, {$match: {"command.find": "c", "command.readConcern.afterClusterTime": after}}],
    cursor: {}, $readPreference: {mode: "secondary"},
}).cursor.firstBatch.length === 1;
assert.soon(waits);
const waiting = () => Number(assert.commandWorked(secondary.adminCommand({serverStatus: 1})).metrics.repl.waiters.opTime);
assert.soon(() => waiting() >= 1, () => `${waiting()} reads wait`);
letGo(secondary);
join();
assert.soon(() => waiting() === 0, () => `${waiting()} reads wait`);
assert.eq([1, 2], ids(read(after)));
assert.eq([1, 2], ids(read(after, {readConcern: moment})));
rst.stopSet();
