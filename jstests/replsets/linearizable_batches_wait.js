/**
 * Every batch of a linearizable cursor says that the member still led when it was read, not the first one alone.
 * It fails if a later batch is returned while no majority follows the primary, or by a member that leads no more; or if a batch
 * of level majority holds what is not committed.
 *
 * @tags: [requires_own_servers]
 */
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";
import {hold, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const [primary, secondaries] = [rst.getPrimary(), rst.getSecondaries()];
const db = primary.getDB("test");
const documents = Array.from({length: 10}, (_, i) => ({_id: i}));
assert.commandWorked(insert(primary, documents, {w: 3, wtimeout: 60000}));
// One session, for another connection of the test, too.
const lsid = {id: UUID()};
const anywhere = {lsid: lsid, $readPreference: {mode: "primaryPreferred"}};
const open = (level, read) => assert.commandWorked(db.runCommand(Object.assign(read, {readConcern: {level: level}}, anywhere))).cursor.id;
const more = (id) => db.runCommand(Object.assign({getMore: id, collection: "c", batchSize: 3}, anywhere));
const [cut, kept, local] = ["linearizable", "linearizable", "local"].map((level) => open(level, {find: "c", batchSize: 2}));
// What it joins is read with the batch.
const lookup = {$lookup: {from: "late", pipeline: [], as: "late"}};
const joined = open("majority", {aggregate: "c", cursor: {batchSize: 0}, pipeline: [lookup]});

holdBehind(primary, secondaries);
assert.commandWorked(db.runCommand({insert: "late", documents: [{_id: 1}], writeConcern: {w: 1}}));
assert.eq(3, assert.commandWorked(more(local)).cursor.nextBatch.length);
// Each waits until it is killed, and takes its cursor along.
for (const id of [cut, joined]) {
    const join = startParallelShell(funWithArgs((id, lsid, interrupted) => {
        const reply = db.getSiblingDB("test").runCommand({getMore: id, collection: "c", lsid: lsid});
        assert.commandFailedWithCode(reply, interrupted);
    }, id, lsid, ErrorCodes.Interrupted), primary.port);
    const running = {active: true, "command.getMore": id};
    assert.soon(() => {
        const found = primary.getDB("admin").aggregate([{$currentOp: {}}, {$match: running}]).toArray();
        found.forEach((op) => assert.commandWorked(primary.adminCommand({killOp: 1, op: op.opid})));
        return found.length > 0;
    }, "a batch does not wait for a majority");
    join();
    assert.commandFailedWithCode(more(id), ErrorCodes.CursorNotFound);
}
secondaries.forEach(letGo);
assert.eq(3, assert.commandWorked(more(kept)).cursor.nextBatch.length);
rst.awaitReplication();

// Cursors outlive the reign; what they promised does not.
rst.stepUp(secondaries[0]);
assert.commandFailedWithCode(more(kept), ErrorCodes.NotWritablePrimary);
assert.eq(3, assert.commandWorked(more(local)).cursor.nextBatch.length);
rst.stopSet();
