/**
 * bulkWrite takes statements on several collections; the router divides them over shards and keeps their order and indexes.
 * It fails if results lose their idx, counts are not added up, or an ordered request goes on after an error.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, heldBy, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "bulk_write_sharded", first);
shardByRanges(testDB.a, {x: 1}, [{x: 0}], [first, second]);
shardByRanges(testDB.b, {_id: 1}, [{_id: 0}], [second, first]);
const nsInfo = ["a", "b", "plain"].map((name) => ({ns: `${testDB.getName()}.${name}`}));
function bulk(ops, more) {
    return db.adminCommand(Object.assign({bulkWrite: 1, ops: ops, nsInfo: nsInfo}, more));
}

let reply = assert.commandWorked(bulk([
    {insert: 0, document: {_id: 1, x: -1}},
    {insert: 1, document: {_id: -1}},
    {insert: 0, document: {_id: 2, x: 1}},
    {insert: 2, document: {_id: 3}},
    {update: 0, filter: {x: 1}, updateMods: {$set: {v: 1}}},
    {update: 1, filter: {_id: 8}, updateMods: {$set: {v: 1}}, upsert: true},
    {update: 0, filter: {}, updateMods: {$set: {all: 1}}, multi: true},
    {delete: 2, filter: {_id: 3}},
]));
assert.eq(0, reply.nErrors);
assert.eq(4, reply.nInserted);
assert.eq(3, reply.nMatched);
assert.eq(3, reply.nModified);
assert.eq(1, reply.nUpserted);
assert.eq(1, reply.nDeleted);
assert.eq(NumberLong(0), reply.cursor.id);
assert.eq("admin.$cmd.bulkWrite", reply.cursor.ns);
const results = reply.cursor.firstBatch;
assert.eq([0, 1, 2, 3, 4, 5, 6, 7], results.map((r) => r.idx));
assert(results.every((r) => r.ok === 1), tojson(results));
assert.eq([1, 1, 1, 1, 1, 1, 2, 1], results.map((r) => r.n));
assert.eq(1, results[4].nModified);
assert.eq({_id: 8}, results[5].upserted);
assert.eq([1, 1], [heldBy(testDB.a, first), heldBy(testDB.a, second)]);
assert.eq([1, 1], [heldBy(testDB.b, first), heldBy(testDB.b, second)]);
assert.eq(0, testDB.plain.find().itcount());

// Ordered: the first error ends it.
reply = assert.commandWorked(bulk([
    {insert: 1, document: {_id: 50}},
    {insert: 1, document: {_id: 8}},
    {insert: 1, document: {_id: 51}},
]));
assert.eq(1, reply.nErrors);
assert.eq(1, reply.nInserted);
assert.eq([[1, 0], [0, 1]], reply.cursor.firstBatch.map((r) => [r.ok, r.idx]));
assert.eq(11000, reply.cursor.firstBatch[1].code);
assert.eq(0, testDB.b.find({_id: 51}).itcount());

// Unordered, only errors reported.
reply = assert.commandWorked(bulk([
    {insert: 1, document: {_id: 8}},
    {insert: 1, document: {_id: 60}},
    {insert: 0, document: {_id: 9, x: [1]}},
    {insert: 1, document: {_id: -1}},
    {update: 0, filter: {x: -1}, updateMods: {$inc: {n: 1}}},
], {ordered: false, errorsOnly: true}));
assert.eq(3, reply.nErrors);
assert.eq(1, reply.nInserted);
assert.eq(1, reply.nModified);
assert.eq([0, 2, 3], reply.cursor.firstBatch.map((r) => r.idx).sort());
assert.eq(60, testDB.b.findOne({_id: 60})._id);

// Refused as a whole.
assert.commandFailedWithCode(testDB.runCommand({bulkWrite: 1, ops: [{insert: 0, document: {}}], nsInfo: nsInfo}), 13);
assert.commandFailedWithCode(bulk([{insert: 9, document: {}}]), 2);
assert.commandFailedWithCode(bulk([]), 16);
assert.commandFailedWithCode(db.adminCommand({bulkWrite: 1, ops: [{insert: 0, document: {}}], nsInfo: []}), [2, 16]);
assert.commandWorked(testDB.dropDatabase());
