/**
 * A batch of inserts is divided among the shards, and each error must carry the index the client gave the document.
 * It fails if indexes are those of a shard's part, an ordered batch goes on after an error, or an unordered one stops.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "insert_errors_over_shards", {_id: 1}, [{_id: 0}], [first, second]);
const testDB = coll.getDB();

function insert(ids, ordered) {
    return testDB.runCommand({insert: "c", documents: ids.map((id) => ({_id: id})), ordered: ordered});
}

assert.eq(4, assert.commandWorked(insert([-1, 1, -2, 2], true)).n);

// Ordered: what comes before the error is there, nothing after it.
let reply = insert([-3, 3, 2, -4, 4], true);
assert.eq(1, reply.ok);
assert.eq(2, reply.n);
assert.eq(1, reply.writeErrors.length);
assert.eq(2, reply.writeErrors[0].index);
assert.eq(11000, reply.writeErrors[0].code);
assert.eq({_id: 1}, reply.writeErrors[0].keyPattern);
assert.eq({_id: 2}, reply.writeErrors[0].keyValue);
assert(reply.writeErrors[0].errmsg.includes("E11000 duplicate key error collection: " + coll.getFullName()), tojson(reply));
assert.eq(0, coll.find({_id: {$in: [-4, 4]}}).itcount());

// Unordered: everything that can be done is done, errors come in the order of their index.
reply = insert([10, -1, 11, 1, -10, 2, -11, -2], false);
assert.eq(1, reply.ok);
assert.eq(4, reply.n);
assert.eq([1, 3, 5, 7], reply.writeErrors.map((e) => e.index));
assert.eq([11000, 11000, 11000, 11000], reply.writeErrors.map((e) => e.code));
assert.eq([-1, 1, 2, -2], reply.writeErrors.map((e) => e.keyValue._id));

// An error that the router itself finds stands among the shards' errors.
const keyed = testDB.keyed;
shardByRanges(keyed, {k: 1}, [{k: 0}], [first, second]);
reply = testDB.runCommand({
    insert: "keyed",
    ordered: false,
    documents: [{_id: 1, k: -1}, {_id: 2, k: [1]}, {_id: 3, k: 1}, {_id: 1, k: -1}],
});
assert.eq(2, reply.n);
assert.eq([1, 3], reply.writeErrors.map((e) => e.index));
assert.eq([61, 11000], reply.writeErrors.map((e) => e.code));

// Ids are unique only within a shard: the same one under two keys is two documents.
assert.commandWorked(keyed.insert({_id: 1, k: 1}));
assert.eq(2, keyed.find({_id: 1}).itcount());

// The shell's bulk result says the same.
const bulk = coll.initializeUnorderedBulkOp();
[20, -1, 21, 1].forEach((id) => bulk.insert({_id: id}));
const error = assert.throws(() => bulk.execute());
assert.eq(2, error.nInserted);
assert.eq([1, 3], error.writeErrors.map((e) => e.index));

// Malformed requests are refused as a whole.
assert.commandFailedWithCode(testDB.runCommand({insert: "c", documents: []}), 16);
assert.commandFailedWithCode(testDB.runCommand({insert: "c"}), 40414);
assert.commandWorked(testDB.dropDatabase());
