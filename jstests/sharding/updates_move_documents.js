/**
 * An update that gives a document a shard key of another shard takes it there, once, and tells a repetition what it did, also
 * after the range has moved. It fails if the document is lost, is on both shards, or is changed by the repetition.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "updates_move_documents", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
const lsid = {id: UUID()};
let number = 0;

function retryable(command, again) {
    number += again ? 0 : 1;
    const fields = {lsid: lsid, txnNumber: NumberLong(number)};
    return testDB.runCommand(Object.assign({}, command, fields));
}
function held() {
    return [heldBy(coll, first), heldBy(coll, second)];
}
function reset() {
    assert.commandWorked(coll.deleteMany({}));
    assert.commandWorked(coll.insert([{_id: 1, x: -1, n: 0}, {_id: 2, x: -2, n: 0}, {_id: 3, x: 3, n: 0}]));
}
const go = {$set: {x: 9}, $inc: {n: 1}};

// Each statement, its repetition, and its repetition after the range it came from has moved.
const commands = [
    {update: "c", updates: [{q: {x: -1}, u: go}]},
    {update: "c", updates: [{q: {_id: 1}, u: go}]},
    {update: "c", updates: [{q: {x: -1}, u: [{$set: {x: 9, n: 1}}]}]},
    {update: "c", updates: [{q: {x: -1}, u: {x: 9, n: 1}}]},
    {update: "c", updates: [{q: {n: 0, _id: {$lt: 3}}, u: go}]},
    {findAndModify: "c", query: {x: -1}, update: go},
    {findAndModify: "c", query: {x: -1}, update: go, new: true},
    {findAndModify: "c", query: {n: 0}, sort: {_id: 1}, update: go, new: true, fields: {x: 1}},
];
for (const command of commands) {
    reset();
    const done = assert.commandWorked(retryable(command));
    const state = coll.find().sort({_id: 1}).toArray();
    assert.eq(1, state.filter((d) => d.n === 1 && d.x === 9).length, tojson(state));
    assert.eq(3, state.length, tojson(command));
    assert.eq([1, 2], held(), tojson(command));
    for (const owner of [first, second]) {
        moveRange(coll, {min: {x: MinKey}, max: {x: 0}}, owner);
        const again = assert.commandWorked(retryable(command, true));
        assert.docEq(state, coll.find().sort({_id: 1}).toArray());
        for (const field of ["n", "nModified", "value", "lastErrorObject"]) {
            assert.docEq({f: done[field]}, {f: again[field]}, `${field} of ${tojson(command)}`);
        }
    }
    moveRange(coll, {min: {x: MinKey}, max: {x: 0}}, first);
}

// An upsert whose document belongs to the other shard than its filter says.
for (const command of [
    {update: "c", updates: [{q: {x: -7}, u: {$set: {x: 7}}, upsert: true}]},
    {findAndModify: "c", query: {x: -7}, update: {$set: {x: 7}}, upsert: true, new: true},
]) {
    assert.commandWorked(coll.deleteMany({}));
    const done = assert.commandWorked(retryable(command));
    const again = assert.commandWorked(retryable(command, true));
    assert.eq([0, 1], held(), tojson(command));
    assert.eq(done.upserted, again.upserted);
    assert.eq(done.lastErrorObject, again.lastErrorObject);
    assert.eq(done.value, again.value);
}

// In a transaction of the client's, together with what else it does.
reset();
const session = db.getMongo().startSession();
const inSession = session.getDatabase(testDB.getName()).c;
for (const commits of [false, true]) {
    session.startTransaction();
    assert.eq(1, inSession.updateOne({x: -1}, go).modifiedCount);
    assert.eq(9, inSession.findAndModify({query: {x: 9}, update: {$inc: {n: 1}}, new: true}).x);
    assert.eq([-1, -2], coll.find({x: {$lt: 0}}).sort({x: -1}).toArray().map((d) => d.x));
    assert.eq(1, inSession.find({x: {$lt: 0}}).itcount());
    if (commits) {
        assert.commandWorked(session.commitTransaction_forTesting());
    } else {
        assert.commandWorked(session.abortTransaction_forTesting());
    }
    assert.eq(commits ? [1, 2] : [2, 1], held());
}
assert.docEq([{_id: 1, x: 9, n: 2}], coll.find({_id: 1}).toArray());

// Refused: neither retryable nor in a transaction; in a batch; many at once; where the _id is taken on the other shard.
reset();
assert.commandFailedWithCode(testDB.runCommand({update: "c", updates: [{q: {x: -1}, u: go}]}), 20);
assert.commandFailedWithCode(testDB.runCommand({update: "c", updates: [{q: {_id: 1}, u: go}]}), 20);
const both = [{q: {x: -1}, u: go}, {q: {x: -2}, u: {$inc: {n: 1}}}];
assert.commandFailedWithCode(retryable({update: "c", updates: both}), 72);
assert.commandFailedWithCode(retryable({update: "c", updates: [{q: {x: -1}, u: go, multi: true}]}), 72);
session.startTransaction();
assert.commandFailedWithCode(inSession.runCommand({update: "c", updates: both}), 72);
assert.commandFailedWithCode(session.abortTransaction_forTesting(), 251);
assert.eq([2, 1], held());
assert.commandWorked(coll.insert({_id: 1, x: 5, n: 0}));
const taken = assert.commandFailedWithCode(retryable({update: "c", updates: [{q: {x: -1}, u: go}]}), 11000);
assert(/orphan for this document or _id/.test(tojson(taken)), tojson(taken));
assert.eq([2, 2], held());
session.endSession();
assert.commandWorked(testDB.dropDatabase());
