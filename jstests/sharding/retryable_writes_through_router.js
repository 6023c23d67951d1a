/**
 * A write repeated with the same session and number is done once, however the router divided it.
 * It fails if a shard forgets a statement's result, statement ids are renumbered by shard, or old numbers are accepted.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "retryable_writes_through_router", {_id: 1}, [{_id: 0}], [first, second]);
const testDB = coll.getDB();
const lsid = {id: UUID()};
let number = 0;
function twice(command) {
    const numbered = Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(++number)});
    const one = assert.commandWorked(testDB.runCommand(numbered));
    const two = assert.commandWorked(testDB.runCommand(numbered));
    return [one, two];
}

let [one, two] = twice({insert: "c", documents: [{_id: -1, v: 0}, {_id: 1, v: 0}, {_id: -2, v: 0}], ordered: false});
assert.eq([3, 3], [one.n, two.n]);
assert(!two.writeErrors, tojson(two));
assert.sameMembers([0, 1, 2], two.retriedStmtIds);

[one, two] = twice({update: "c", updates: [{q: {_id: -1}, u: {$inc: {v: 1}}}, {q: {_id: 1}, u: {$inc: {v: 1}}}]});
assert.eq([2, 2], [one.nModified, two.nModified]);
assert.eq([1, 1], coll.find({_id: {$in: [-1, 1]}}).toArray().map((d) => d.v));

[one, two] = twice({update: "c", updates: [{q: {_id: 5}, u: {$inc: {v: 1}}, upsert: true}]});
assert.eq(one.upserted, two.upserted);
assert.eq(1, coll.findOne({_id: 5}).v);

[one, two] = twice({findAndModify: "c", query: {_id: 1}, update: {$inc: {v: 10}}, new: true});
assert.eq(11, one.value.v);
assert.docEq(one.value, two.value);
assert.docEq(one.lastErrorObject, two.lastErrorObject);
assert.eq(0, two.retriedStmtId);
assert.eq(11, coll.findOne({_id: 1}).v);

[one, two] = twice({findAndModify: "c", query: {_id: 5}, remove: true});
assert.docEq(one.value, two.value);

[one, two] = twice({delete: "c", deletes: [{q: {_id: -2}, limit: 1}]});
assert.eq([1, 1], [one.n, two.n]);

// Statements with their own ids: only those that are new are done.
const base = {insert: "c", ordered: true, lsid: lsid, txnNumber: NumberLong(++number)};
assert.commandWorked(testDB.runCommand(
    Object.assign({}, base, {documents: [{_id: 20}, {_id: -20}], stmtIds: [NumberInt(0), NumberInt(1)]})));
const third = assert.commandWorked(testDB.runCommand(Object.assign({}, base, {
    documents: [{_id: -20}, {_id: 21}, {_id: -21}], stmtIds: [NumberInt(1), NumberInt(2), NumberInt(3)],
})));
assert.eq(3, third.n);
assert.eq([1], third.retriedStmtIds);
assert.eq(4, coll.find({_id: {$in: [20, -20, 21, -21]}}).itcount());

// The shards wrote it down.
const record = shardConnection(db, first).getDB("config").transactions.findOne({"_id.id": lsid.id});
assert.eq(NumberLong(number), record.txnNum);
assert(record.lastWriteOpTime.ts instanceof Timestamp, tojson(record));
assert(!("state" in record), tojson(record));

// An older number is refused, and so is what cannot be repeated.
assert.commandFailedWithCode(testDB.runCommand(
    {insert: "c", documents: [{_id: 99}], lsid: lsid, txnNumber: NumberLong(1)}), 225);
assert.commandFailedWithCode(testDB.runCommand({
    update: "c", updates: [{q: {}, u: {$set: {m: 1}}, multi: true}], lsid: lsid, txnNumber: NumberLong(++number),
}), 72);
assert.commandFailedWithCode(testDB.runCommand({find: "c", lsid: lsid, txnNumber: NumberLong(++number)}), 50768);
assert.commandWorked(testDB.dropDatabase());
