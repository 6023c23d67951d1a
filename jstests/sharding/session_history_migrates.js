/**
 * A retryable write done before a migration must be known to the new owner, so that repeating it there does nothing.
 * It fails if the donor's session history does not move with the range, or is cut off at the commit.
 *
 * @tags: [requires_sharding]
 */
import {
    dropWithRemains,
    freshCollection,
    inBackground,
    moveRange,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "session_history_migrates", {_id: 1}, [{_id: 0}], [first, first]);
const testDB = coll.getDB();
const lsid = {id: UUID()};
const run = (command, number) => assert.commandWorked(
    testDB.runCommand(Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(number)})));

const commands = [
    {insert: "c", documents: [{_id: 1, v: 0}, {_id: 2, v: 0}, {_id: -1, v: 0}], ordered: false},
    {update: "c", updates: [{q: {_id: 1}, u: {$inc: {v: 1}}}, {q: {_id: -1}, u: {$inc: {v: 1}}}]},
    {findAndModify: "c", query: {_id: 2}, update: {$inc: {v: 5}}, new: true},
    {findAndModify: "c", query: {_id: 3}, update: {$inc: {v: 5}}, upsert: true, new: false},
    {update: "c", updates: [{q: {_id: 4}, u: {$inc: {v: 1}}, upsert: true}]},
    {delete: "c", deletes: [{q: {_id: 4}, limit: 1}]},
    {findAndModify: "c", query: {_id: 2}, remove: true},
];
function everything() {
    return coll.find().sort({_id: 1}).toArray();
}

// After each of the writes the range moves, and the write is repeated.
let owner = first;
commands.forEach((command, i) => {
    const done = run(command, i + 1);
    const state = everything();
    owner = owner === first ? second : first;
    moveRange(coll, {min: {_id: 0}, max: {_id: MaxKey}}, owner);
    const again = run(command, i + 1);
    assert.eq(state, everything(), tojson(command));
    for (const field of ["n", "nModified", "upserted", "value"]) {
        assert.eq(done[field], again[field], `${field} of ${tojson(command)}`);
    }
    if (done.lastErrorObject) {
        assert.docEq(done.lastErrorObject, again.lastErrorObject);
    }
});

// One number, some statements before the migration and some after it.
const number = NumberLong(commands.length + 1);
const part = (ids, statements) => assert.commandWorked(testDB.runCommand({
    insert: "c", documents: ids.map((id) => ({_id: id})), stmtIds: statements.map((n) => NumberInt(n)),
    lsid: lsid, txnNumber: number,
}));
part([100, 101], [0, 1]);
owner = owner === first ? second : first;
moveRange(coll, {min: {_id: 0}, max: {_id: MaxKey}}, owner);
const reply = part([100, 101, 102], [0, 1, 2]);
assert.eq(3, reply.n);
assert.sameMembers([0, 1], reply.retriedStmtIds);
assert.eq(3, coll.find({_id: {$gte: 100}}).itcount());

// The receiving shard has a record of the session.
const record = shardConnection(db, owner).getDB("config").transactions.findOne({"_id.id": lsid.id});
assert.eq(number, record.txnNum);

// While a migration is under way: the write comes after the range's documents were copied.
const other = owner === first ? second : first;
let move;
const late = {update: "c", updates: [{q: {_id: 100}, u: {$inc: {late: 1}}}]};
whileHung(shardConnection(db, other), "migrateThreadHangAtStep4", (point) => {
    move = inBackground(db, {moveRange: coll.getFullName(), min: {_id: 0}, max: {_id: MaxKey}, toShard: other});
    point.wait();
    run(late, Number(number) + 1);
});
assert.commandWorked(move.returnData());
run(late, Number(number) + 1);
assert.eq(1, coll.findOne({_id: 100}).late);
dropWithRemains(testDB);
