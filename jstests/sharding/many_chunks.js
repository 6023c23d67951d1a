/**
 * A collection of many hundred chunks is routed like one of two, and refreshed in parts.
 * It fails if the routing table loses chunks when it is refreshed, or looking up a key goes wrong at a boundary.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, collectionEntry, freshDatabase, moveRange, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "many_chunks", first);
const coll = testDB.c;
const ns = coll.getFullName();

// Many at once by a hashed key.
const hashed = testDB.h;
assert.commandWorked(db.adminCommand({shardCollection: hashed.getFullName(), key: {_id: "hashed"}, numInitialChunks: 600}));
assert.eq(600, db.getSiblingDB("config").chunks.countDocuments({uuid: collectionEntry(hashed).uuid}));
const documents = [];
for (let i = 0; i < 2000; i++) {
    documents.push({_id: i});
}
assert.commandWorked(hashed.insert(documents));
assert.eq(2000, hashed.find().itcount());
for (const i of [0, 7, 999, 1999]) {
    assert.eq(1, hashed.find({_id: i}).itcount());
    assert.eq(1, shardsInPlan(hashed.find({_id: i}).explain()).length);
}

// Many by splitting one after the other, some of them moved.
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
for (let x = 0; x < 200; x++) {
    assert.commandWorked(db.adminCommand({split: ns, middle: {x: x * 10}}));
}
assert.eq(201, chunksOf(coll).length);
for (let x = 0; x < 200; x += 40) {
    moveRange(coll, {min: {x: x * 10}, max: {x: x * 10 + 10}}, second);
}
const batch = [];
for (let x = -5; x < 2005; x++) {
    batch.push({_id: x, x: x});
}
assert.commandWorked(coll.insert(batch));
assert.eq(2010, coll.find().itcount());
for (let x = 0; x < 200; x += 40) {
    const at = x * 10;
    assert.eq([second], shardsInPlan(coll.find({x: at}).explain()));
    assert.eq([second], shardsInPlan(coll.find({x: at + 9.99}).explain()));
    assert.eq([first], shardsInPlan(coll.find({x: at + 10}).explain()));
    assert.eq([first], shardsInPlan(coll.find({x: at - 0.01}).explain()));
}

// No gap, no overlap, and each version once.
const chunks = chunksOf(coll);
chunks.forEach((chunk, i) => {
    if (i > 0) {
        assert.eq(chunks[i - 1].max, chunk.min);
    }
});
assert.eq(chunks.length, new Set(chunks.map((c) => tojson(c.lastmod))).size);
assert.eq(0, testDB.runCommand({checkMetadataConsistency: 1}).cursor.firstBatch.length);
assert.commandWorked(testDB.dropDatabase());
