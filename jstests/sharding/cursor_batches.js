/**
 * A router's cursor gathers batches of several shards' cursors, and gives all of them back when it ends.
 * It fails if a batch is larger than asked, a cursor outlives its last document, or a killed one leaves shards' cursors open.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, openCursors, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "cursor_batches", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -50; x < 50; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}

const openOnShards = () => openCursors(shardConnection(db, first), shardConnection(db, second));
const before = openOnShards();

let cursor = assert.commandWorked(testDB.runCommand({find: "c", batchSize: 0})).cursor;
assert.eq([], cursor.firstBatch);
assert.eq(coll.getFullName(), cursor.ns);
assert.neq(NumberLong(0), cursor.id);
const seen = new Set();
for (let i = 0; i < 1000; i++) {
    const more = assert.commandWorked(testDB.runCommand({getMore: cursor.id, collection: "c", batchSize: 7})).cursor;
    assert.lte(more.nextBatch.length, 7);
    assert.eq(coll.getFullName(), more.ns);
    more.nextBatch.forEach((d) => {
        assert(!seen.has(d._id), `${d._id} came twice`);
        seen.add(d._id);
    });
    if (bsonWoCompare({i: more.id}, {i: NumberLong(0)}) === 0) {
        break;
    }
}
assert.eq(100, seen.size);
const id = cursor.id;
assert.commandFailedWithCode(testDB.runCommand({getMore: id, collection: "c"}), 43);

// Everything in the first batch: no cursor.
cursor = assert.commandWorked(testDB.runCommand({find: "c"})).cursor;
assert.eq(100, cursor.firstBatch.length);
assert.eq(NumberLong(0), cursor.id);
cursor = assert.commandWorked(testDB.runCommand({find: "c", batchSize: 3, singleBatch: true})).cursor;
assert.eq(NumberLong(0), cursor.id);
assert.eq(3, cursor.firstBatch.length);

// Kill one in the middle.
cursor = assert.commandWorked(testDB.runCommand({find: "c", sort: {x: 1}, batchSize: 2})).cursor;
assert.eq([-50, -49], cursor.firstBatch.map((d) => d._id));
assert.commandFailedWithCode(testDB.runCommand({getMore: cursor.id, collection: "other"}), 13);
const unknown = NumberLong("123456789012345");
const killed = assert.commandWorked(testDB.runCommand({killCursors: "c", cursors: [cursor.id, unknown]}));
assert.eq([cursor.id], killed.cursorsKilled);
assert.eq([unknown], killed.cursorsNotFound);
assert.eq([], killed.cursorsAlive);
assert.eq([], killed.cursorsUnknown);
assert.commandFailedWithCode(testDB.runCommand({getMore: cursor.id, collection: "c"}), 43);
assert.soon(() => openOnShards() <= before, () => `shards still have ${openOnShards()} cursors open, not ${before}`);

// Pipelines have cursors of the same kind.
cursor = assert.commandWorked(
    testDB.runCommand({aggregate: "c", pipeline: [{$sort: {x: -1}}], cursor: {batchSize: 4}})).cursor;
assert.eq([49, 48, 47, 46], cursor.firstBatch.map((d) => d._id));
const rest = assert.commandWorked(testDB.runCommand({getMore: cursor.id, collection: "c"})).cursor;
assert.eq(96, rest.nextBatch.length);
assert.eq(-50, rest.nextBatch[95]._id);
assert.eq(NumberLong(0), rest.id);
assert.commandFailedWithCode(testDB.runCommand({find: "c", batchSize: -1}), [2, 51024]);
assert.commandWorked(testDB.dropDatabase());
