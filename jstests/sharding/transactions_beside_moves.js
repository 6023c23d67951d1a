/**
 * A transaction never misses documents because their range moved after its snapshots were taken, and does not wait long for
 * a range that is just moving. It fails if a shard answers a statement for a range that came to it after the transaction
 * began there.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, moveRange, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "transactions_beside_moves", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
shardByRanges(testDB.other, {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
assert.commandWorked(testDB.other.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
const session = db.getMongo().startSession();
const inSession = session.getDatabase(testDB.getName());

function statement(command) {
    return inSession.runCommand(command);
}
const commands = [
    {find: "c", filter: {x: -1}},
    {find: "c"},
    {update: "c", updates: [{q: {x: -1}, u: {$set: {y: 1}}}]},
    {delete: "c", deletes: [{q: {_id: 1}, limit: 1}]},
    {aggregate: "c", pipeline: [{$group: {_id: null, n: {$sum: 1}}}], cursor: {}},
];
let owner = first;
for (const level of ["local", "majority", "snapshot"]) {
    for (const command of commands) {
        const to = owner === first ? second : first;
        session.startTransaction({readConcern: {level: level}});
        // Its snapshot on the shard that is about to receive the range.
        const there = {find: "other", filter: {x: to === first ? -1 : 1}};
        assert.eq(1, assert.commandWorked(statement(there)).cursor.firstBatch.length);
        moveRange(coll, {min: {x: MinKey}, max: {x: 0}}, to);
        owner = to;
        // The router has to hear of the move.
        assert.eq(1, coll.find({x: -1}).itcount());
        const refused = assert.commandFailedWithCode(statement(command), 272, tojson([level, command]));
        assert.eq(["TransientTransactionError"], refused.errorLabels, tojson(refused));
        assert.commandFailedWithCode(session.abortTransaction_forTesting(), 251);
        // Begun anew it sees everything.
        session.startTransaction({readConcern: {level: level}});
        assert.eq(1, assert.commandWorked(statement(there)).cursor.firstBatch.length);
        assert.eq(2, assert.commandWorked(statement({find: "c"})).cursor.firstBatch.length);
        assert.commandWorked(session.commitTransaction_forTesting());
    }
}
assert.eq(2, coll.find().itcount());
assert(!coll.findOne({x: -1}).hasOwnProperty("y"));
session.endSession();
assert.commandWorked(testDB.dropDatabase());
