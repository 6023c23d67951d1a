/**
 * Stages that read a second collection must find it wherever it lies: sharded, unsharded, or on another shard.
 * It fails if a shard looks only into its own part of the other collection, or counts orphans of it.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardByRanges, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "aggregation_lookup_and_union", first);
shardByRanges(testDB.orders, {item: 1}, [{item: 5}], [first, second]);
shardByRanges(testDB.items, {_id: 1}, [{_id: 3}], [second, first]);
for (let i = 0; i < 10; i++) {
    assert.commandWorked(testDB.orders.insert({_id: i, item: i, n: i * 2}));
    assert.commandWorked(testDB.items.insert({_id: i, name: "item " + i}));
    assert.commandWorked(testDB.plain.insert({_id: i, name: "plain " + i}));
}
// An orphan in the second collection: it must not be joined.
const orphaned = shardConnection(db, first).getDB(testDB.getName()).items;
assert.commandWorked(orphaned.insert({_id: 1.5, name: "orphan"}));

const lookup = (from, more) => [
    {$lookup: Object.assign({from: from, localField: "item", foreignField: "_id", as: "found"}, more)},
    {$sort: {_id: 1}},
];
for (const [from, word] of [["items", "item"], ["plain", "plain"]]) {
    const joined = testDB.orders.aggregate(lookup(from)).toArray();
    assert.eq(10, joined.length);
    joined.forEach((d, i) => assert.eq([{_id: i, name: `${word} ${i}`}], d.found, tojson(d)));
    const counted = testDB.orders.aggregate(lookup(from, {pipeline: [{$match: {_id: {$gte: 4}}}]})).toArray();
    assert.eq([0, 0, 0, 0, 1, 1, 1, 1, 1, 1], counted.map((d) => d.found.length));
}
// From the unsharded collection into the sharded one, with a pipeline that groups.
const grouped = testDB.plain.aggregate([
    {$lookup: {from: "orders", let: {id: "$_id"}, as: "o", pipeline: [
        {$match: {$expr: {$lte: ["$item", "$$id"]}}}, {$group: {_id: null, n: {$sum: "$n"}}},
    ]}},
    {$sort: {_id: 1}},
    {$project: {n: {$first: "$o.n"}}},
]).toArray();
assert.eq([0, 2, 6, 12, 20, 30, 42, 56, 72, 90], grouped.map((d) => d.n));

const united = testDB.orders.aggregate([
    {$project: {item: 1}},
    {$unionWith: {coll: "items", pipeline: [{$match: {_id: {$lt: 5}}}]}},
    {$group: {_id: null, n: {$sum: 1}, orphans: {$sum: {$cond: [{$eq: ["$name", "orphan"]}, 1, 0]}}}},
]).toArray();
assert.eq([{_id: null, n: 15, orphans: 0}], united);
assert.eq(20, testDB.plain.aggregate([{$unionWith: "orders"}]).itcount());
assert.eq(10, testDB.absent.aggregate([{$unionWith: "orders"}]).itcount());
assert.eq([[]], testDB.orders.aggregate([{$match: {item: 1}}].concat(lookup("absent"))).toArray().map((d) => d.found));
assert.commandWorked(testDB.dropDatabase());
