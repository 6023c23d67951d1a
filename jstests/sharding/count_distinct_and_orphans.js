/**
 * Counts, distinct values and sums must not include documents that a shard holds but does not own.
 * It fails if a shard answers without its ownership filter, or the router adds up a value twice.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "count_distinct_and_orphans", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x, v: Math.abs(x) % 4}));
}

// Plant documents where they do not belong: a direct write to a shard is not checked against ownership.
const planted = shardConnection(db, first).getDB(testDB.getName()).c;
assert.commandWorked(planted.insert([{_id: "o1", x: 5, v: 100}, {_id: "o2", x: 6, v: 101}]));
assert.eq(12, heldBy(coll, first));

assert.eq(20, coll.find().itcount());
assert.eq(20, coll.countDocuments({}));
assert.eq(20, coll.find({v: {$gte: 0}}).count());
assert.eq(0, coll.count({v: {$gte: 100}}));
assert.eq(20, coll.find().count(), "without a filter nothing need be read but a number");
assert.eq(15, coll.find({x: {$gte: -5}}).count(), "the shard key's index is enough to count by");
assert.eq([0, 1, 2, 3], coll.distinct("v").sort());
assert.eq([0, 1, 2, 3], coll.distinct("v", {x: {$gte: -5}}).sort());
assert.eq([], coll.distinct("v", {v: {$gte: 100}}));
// By an index that begins with the field, from one value to the next.
assert.commandWorked(coll.createIndex({v: 1}));
assert.eq([0, 1, 2, 3], coll.distinct("v").sort());
assert.eq(20, coll.find({v: {$gte: 0}}).hint({v: 1}).count());
assert.eq([{_id: null, n: 20, top: 3}],
          coll.aggregate([{$group: {_id: null, n: {$sum: 1}, top: {$max: "$v"}}}]).toArray());
assert.eq(1, coll.find({x: 5}).itcount());
assert.eq(0, coll.find({_id: "o1"}).itcount());

// Writes through the router do not touch them either.
assert.eq(0, assert.commandWorked(coll.updateMany({v: 100}, {$set: {w: 1}})).matchedCount);
assert.eq(0, assert.commandWorked(coll.deleteMany({v: 101})).deletedCount);
assert.eq(null, coll.findAndModify({query: {x: 5, v: 100}, remove: true}));
assert.eq(2, planted.find({v: {$gte: 100}}).itcount());

// Limits and skips of a count are the whole count's.
assert.eq(3, coll.find({v: {$gte: 0}}).limit(3).count(true));
assert.eq(17, coll.find({v: {$gte: 0}}).skip(3).count(true));
assert.eq(0, coll.find({v: {$gte: 0}}).skip(30).count(true));

assert.commandWorked(planted.remove({v: {$gte: 100}}));
assert.commandWorked(testDB.dropDatabase());
