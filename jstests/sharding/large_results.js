/**
 * Results larger than one reply come in several, also when sorted over shards, and a large batch of writes is divided.
 * It fails if a reply exceeds sixteen megabytes, a document between two replies is lost, or a large insert is refused.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "large_results", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();

// Forty documents of a megabyte, alternating between shards.
const pad = "p".repeat(1024 * 1024);
for (let i = 0; i < 40; i++) {
    assert.commandWorked(coll.insert({_id: i, x: i % 2 ? i : -i - 1, pad: pad}));
}
assert.eq([20, 20], [heldBy(coll, first), heldBy(coll, second)]);

for (const sort of [{_id: 1}, {_id: -1}, {x: 1}, undefined]) {
    let batch = assert.commandWorked(testDB.runCommand(Object.assign({find: "c"}, sort ? {sort: sort} : {}))).cursor;
    const ids = batch.firstBatch.map((d) => d._id);
    assert.lt(batch.firstBatch.length, 17);
    let replies = 1;
    while (bsonWoCompare({i: batch.id}, {i: NumberLong(0)}) !== 0) {
        batch = assert.commandWorked(testDB.runCommand({getMore: batch.id, collection: "c"})).cursor;
        assert.lt(batch.nextBatch.length, 17);
        batch.nextBatch.forEach((d) => ids.push(d._id));
        replies++;
    }
    assert.gte(replies, 3);
    assert.eq(40, new Set(ids).size);
    assert.eq(40, ids.length);
    if (sort && sort._id) {
        assert.eq(sort._id === 1 ? 0 : 39, ids[0]);
    }
}
assert.eq(40, coll.aggregate([{$sort: {_id: 1}}]).itcount());
assert.eq([{_id: null, n: 40}], coll.aggregate([{$group: {_id: null, n: {$sum: 1}}}]).toArray());

// Many small documents in one insert, all over the range.
const many = [];
for (let i = 0; i < 20000; i++) {
    many.push({_id: 1000 + i, x: i % 2 ? i : -i});
}
const reply = assert.commandWorked(testDB.runCommand({insert: "c", documents: many, ordered: false}));
assert.eq(20000, reply.n);
assert.eq(20040, coll.find({}, {_id: 1}).itcount());
assert.eq(20000, assert.commandWorked(coll.deleteMany({_id: {$gte: 1000}})).deletedCount);

// A document may have sixteen megabytes and not a byte more.
assert.commandFailedWithCode(coll.insert({x: 1, big: "b".repeat(16 * 1024 * 1024)}), [2, 10334]);
assert.commandWorked(testDB.dropDatabase());
