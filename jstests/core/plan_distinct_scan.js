/**
 * The values of an indexed field are found by seeking from one to the next.
 * Fails when a distinct reads every key, loses a value on the way, or seeks where several values share a key.
 *
 * # On a shard that owns part of a collection every document is looked at for its shard key.
 * @tags: [assumes_unsharded_collection]
 */
import {planHasStage, planStageNames} from "jstests/libs/plan_stages.js";

const coll = db.plan_distinct_scan;
coll.drop();
assert.commandWorked(coll.createIndexes([{a: 1, b: 1}, {c: -1}]));
const documents = [...Array(600).keys()].map(i => ({_id: i, a: i % 6, b: i % 3, c: "c" + i % 4}));
assert.commandWorked(coll.insert(documents));

function explain(key, query) {
    return coll.explain("executionStats").distinct(key, query);
}
function assertSeeks(key, query, values) {
    const explained = explain(key, query);
    assert(planHasStage(explained, "DISTINCT_SCAN"), tojson(planStageNames(explained)));
    assert.lte(explained.executionStats.totalKeysExamined, values.length + 1, tojson(explained.executionStats));
    assert.eq(0, explained.executionStats.totalDocsExamined);
    assert.sameMembers(values, coll.distinct(key, query));
}
assertSeeks("a", {}, [0, 1, 2, 3, 4, 5]);
assertSeeks("a", {a: {$gt: 2}}, [3, 4, 5]);
assertSeeks("b", {a: 4}, [1]);
assertSeeks("c", {}, ["c0", "c1", "c2", "c3"]);

// Not where the field does not lead the index, the filter asks for more, or arrays were met.
for (const [key, query] of [["b", {}], ["a", {c: "c1"}], ["_id", {a: 1}]]) {
    assert(!planHasStage(explain(key, query), "DISTINCT_SCAN"), tojson([key, query]));
}
assert.sameMembers([0, 1, 2], coll.distinct("b"));
assert.sameMembers([0, 2, 4], coll.distinct("a", {c: {$in: ["c0", "c2"]}}));

// A missing field gives no value, null does, and both have one key.
assert.commandWorked(coll.insert([{_id: "missing"}, {_id: "null", a: null}, {_id: "missing too"}]));
assert.sameMembers([null, 0, 1, 2, 3, 4, 5], coll.distinct("a"));
assert.commandWorked(coll.deleteOne({_id: "null"}));
assert.sameMembers([0, 1, 2, 3, 4, 5], coll.distinct("a"));

assert.commandWorked(coll.insert({_id: "array", a: [7, 8]}));
assert(!planHasStage(explain("a", {}), "DISTINCT_SCAN"));
assert.sameMembers([0, 1, 2, 3, 4, 5, 7, 8], coll.distinct("a"));
