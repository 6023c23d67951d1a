/**
 * Scans that each deliver an order are merged instead of sorted: for the values of an $in before the sorted field, and for the
 * branches of an $or.
 * Fails when such a plan sorts, gives another order than a sort would, or gives a document twice.
 *
 * # On a shard that owns part of a collection every document is looked at for its shard key.
 * @tags: [assumes_unsharded_collection]
 */
import {planHasStage, planStages} from "jstests/libs/plan_stages.js";

const coll = db.plan_sort_merge;
coll.drop();
const documents = [...Array(300).keys()].map(i => ({_id: i, a: i % 5, b: (i * 7919) % 101, c: i % 7}));
assert.commandWorked(coll.insert(documents));
const filters = [
    [{a: {$in: [1, 3]}}, {b: 1}, 2],
    [{a: {$in: [0, 2, 4]}}, {b: -1}, 3],
    [{a: {$in: [1, 3]}, b: {$gt: 50}}, {b: 1, a: 1}, 2],
    [{$or: [{a: 1}, {c: 2}]}, {b: 1}, 2],
    [{$or: [{a: {$in: [1, 2]}}, {c: 2, b: {$lt: 90}}]}, {b: -1}, 3],
    [{$or: [{a: 1}, {a: 1, c: 3}]}, {b: 1}, 2],
];
const sorted = filters.map(([filter, sort]) => coll.find(filter).sort(sort).toArray());
assert.commandWorked(coll.createIndexes([{a: 1, b: 1}, {c: 1, b: 1}]));

filters.forEach(([filter, sort, scans], i) => {
    const explain = coll.find(filter).sort(sort).explain("executionStats");
    const message = tojson([filter, sort, explain.queryPlanner]);
    assert(planHasStage(explain, "SORT_MERGE") && !planHasStage(explain, "SORT"), message);
    const read = planStages(explain).filter(stage => stage.stage === "IXSCAN");
    assert.eq(scans, read.length, message);
    assert.eq(sorted[i].length, explain.executionStats.nReturned, message);

    const found = coll.find(filter).sort(sort).batchSize(7).toArray();
    assert.sameMembers(sorted[i], found, message);
    const key = doc => tojson(Object.keys(sort).map(path => doc[path]));
    assert.eq(sorted[i].map(key), found.map(key), message);
    assert.eq(found.slice(4, 9), coll.find(filter).sort(sort).skip(4).limit(5).toArray(), message);
});

// The key of the index that all scans read is shown.
assert.eq(sorted[0].map(doc => doc.b), coll.find(filters[0][0]).sort({b: 1}).returnKey().toArray().map(key => key.b));
assert.eq(["a", "b"], Object.keys(coll.find(filters[0][0]).sort({b: 1}).returnKey().next()));

// A query uses an index once, by however many scans.
const uses = () => Number(coll.aggregate([{$indexStats: {}}, {$match: {name: "a_1_b_1"}}]).next().accesses.ops);
const before = uses();
assert.eq(sorted[0].length, coll.find(filters[0][0]).sort({b: 1}).itcount());
assert.eq(before + 1, uses());

// A cursor that waits between batches goes on as it began.
const cursor = coll.find({a: {$in: [1, 3]}}).sort({b: 1}).batchSize(2);
const first = cursor.next();
assert.commandWorked(coll.deleteMany({a: 3}));
assert.eq(sorted[0].length - 1, cursor.itcount(), tojson(first));

// No order comes of keys that arrays have made.
assert.commandWorked(coll.insert({_id: "array", a: 1, b: [5, 500]}));
assert(!planHasStage(coll.find({a: {$in: [1, 2]}}).sort({b: 1}).explain(), "SORT_MERGE"));
