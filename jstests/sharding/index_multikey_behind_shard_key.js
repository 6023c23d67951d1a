/**
 * An index serves a shard key although it is multikey, as long as that is for the sake of later fields: collections can be sharded
 * by it, and chunks be split, moved and cleaned up. An array in the key itself is refused.
 * It fails if such an index is not found, or a document with several entries is moved more than once or not at all.
 *
 * @tags: [requires_sharding]
 */
import {dropWithRemains, freshDatabase, hastenRangeDeletion, pauseBalancer, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const resume = pauseBalancer(db);
const restore = hastenRangeDeletion(db);
const testDB = freshDatabase(db, "index_multikey_behind_shard_key");
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(coll.createIndex({x: 1, tags: 1}));
const documents = [];
for (let i = 0; i < 300; i++) {
    documents.push({_id: i, x: i % 30, tags: ["a" + i, "b", "c" + (i % 3)]});
}
assert.commandWorked(coll.insert(documents));
assert.commandWorked(coll.insert({_id: "array", x: [1, 2], tags: 1}));
assert.commandFailedWithCode(db.adminCommand({shardCollection: ns, key: {x: 1}}), 72);
assert.commandWorked(coll.deleteOne({_id: "array"}));
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(db.adminCommand({split: ns, find: {x: 3}}));
assert.commandWorked(db.adminCommand({split: ns, middle: {x: 20}}));
for (const to of [second, first, second]) {
    assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: 20}, max: {x: MaxKey}, toShard: to, waitForDelete: true}));
    assert.eq(300, coll.find().itcount());
    assert.eq(100, coll.find({x: {$gte: 20}}).itcount());
    assert.eq(300, coll.aggregate([{$group: {_id: "$_id"}}]).itcount());
    assert.commandWorked(coll.updateMany({x: 25}, {$push: {tags: to}}));
}
assert.commandWorked(db.adminCommand({moveChunk: ns, find: {x: 19}, to: second, _waitForDelete: true}));
assert.eq(300, coll.find().itcount());
assert.eq([], testDB.runCommand({checkMetadataConsistency: 1, checkIndexes: true}).cursor.firstBatch);
dropWithRemains(testDB);
restore();
resume();
