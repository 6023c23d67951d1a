/**
 * A compound index serves queries on its leading fields, and sorts in its own order or that order reversed.
 * Fails when such a query scans the collection or sorts in memory, or the bounds of a trailing field are not used.
 */
import {planHasStage, planIndexes, planStages} from "jstests/libs/plan_stages.js";

const coll = db.index_compound;
coll.drop();
const documents = [];
for (let i = 0; i < 200; i++) {
    documents.push({_id: i, a: i % 4, b: i % 10, c: i});
}
assert.commandWorked(coll.insert(documents));
assert.commandWorked(coll.createIndex({a: 1, b: -1, c: 1}));

function explain(filter, sort) {
    return coll.find(filter).sort(sort || {}).explain("executionStats");
}
for (const filter of [{a: 1}, {a: 1, b: 3}, {a: {$gt: 2}}, {a: {$in: [0, 3]}, b: {$lt: 5}}]) {
    assert.eq(["a_1_b_-1_c_1"], planIndexes(explain(filter)), () => tojson(filter));
}
for (const filter of [{b: 3}, {c: 5}, {b: 3, c: 5}]) {
    assert(planHasStage(explain(filter), "COLLSCAN"), () => tojson(filter));
}
for (const sort of [{a: 1, b: -1}, {a: -1, b: 1, c: -1}, {a: 1}]) {
    const plan = explain({a: {$gte: 0}}, sort);
    assert(!planHasStage(plan, "SORT"), () => tojson(sort));
}
assert(planHasStage(explain({a: {$gte: 0}}, {a: 1, b: 1}), "SORT"));
// An equality on the first field leaves the order of the second.
assert(!planHasStage(explain({a: 2}, {b: 1, c: -1}), "SORT"));

// Bounds of all three fields narrow the scan.
const narrow = explain({a: 1, b: 5, c: {$gte: 100, $lt: 150}});
assert.eq(coll.find({a: 1, b: 5, c: {$gte: 100, $lt: 150}}).itcount(), narrow.executionStats.nReturned);
assert.eq(narrow.executionStats.nReturned, narrow.executionStats.totalDocsExamined);
const scan = planStages(narrow).filter(stage => stage.stage == "IXSCAN")[0];
assert.eq({a: ["[1.0, 1.0]"], b: ["[5.0, 5.0]"], c: ["[100.0, 150.0)"]}, scan.indexBounds);
assert.eq({a: 1, b: -1, c: 1}, scan.keyPattern);
assert.eq("forward", scan.direction);
assert.eq(["(2.0, inf.0]", "[-inf.0, 3.0)"], [{$gt: 2}, {$lt: 3}].map(a => planStages(coll.find({a}).explain()).find(stage => stage.stage == "IXSCAN").indexBounds.a[0]));

// The results are those of a scan of the collection.
for (const filter of [{a: 3, b: {$gte: 5}}, {a: {$in: [1, 2]}, c: {$mod: [7, 0]}}, {a: {$gt: 0}, b: {$in: [1, 9]}}]) {
    const byIndex = coll.find(filter).hint({a: 1, b: -1, c: 1}).toArray().map(doc => doc._id);
    const byScan = coll.find(filter).hint({$natural: 1}).toArray().map(doc => doc._id);
    assert.sameMembers(byScan, byIndex, () => tojson(filter));
}
