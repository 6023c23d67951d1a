/**
 * A $group by an indexed field that needs one document of each group is led by the index from one group to the next.
 * Fails when it reads every key, loses a group, or takes another document than the order of the sort says.
 *
 * # On a shard that owns part of a collection every document is looked at for its shard key.
 * @tags: [assumes_unsharded_collection]
 */
import {explainOfOneNode, planHasStage, planStageNames, planStages} from "jstests/libs/plan_stages.js";

const coll = db.group_by_distinct_scan;
coll.drop();
assert.commandWorked(coll.createIndexes([{a: 1, b: 1}, {"d.e": 1, b: -1}, {u: 1}]));
const documents = [...Array(600).keys()].map(i => ({
    _id: i, a: i % 6, b: (i * 7) % 100, c: "c" + i, d: {e: "e" + i % 4}, u: i % 3, "0": i,
}));
assert.commandWorked(coll.insert(documents));

/** What the pipeline gives without an index, in the order of its groups. */
function bySeeing(pipeline) {
    return coll.aggregate([{$_internalInhibitOptimization: {}}, ...pipeline, {$sort: {_id: 1}}]).toArray();
}
function assertSeeks(pipeline, groups, documentsRead) {
    const explain = explainOfOneNode(coll.explain("executionStats").aggregate(pipeline));
    const cursor = explain.stages[0].$cursor;
    assert(planHasStage(explain, "DISTINCT_SCAN"), tojson(planStageNames(explain)));
    assert(explain.stages[1].$groupByDistinctScan !== undefined, tojson(explain.stages[1]));
    assert.lte(cursor.executionStats.totalKeysExamined, groups + 1, tojson(cursor.executionStats));
    assert.eq(documentsRead, cursor.executionStats.totalDocsExamined, tojson(cursor.executionStats));
    const found = coll.aggregate([...pipeline, {$sort: {_id: 1}}]).toArray();
    assert.eq(groups, found.length, tojson(found));
    assert.eq(bySeeing(pipeline), found);
    return explain;
}
function assertSees(pipeline) {
    const explain = coll.explain().aggregate(pipeline);
    assert(!planHasStage(explain, "DISTINCT_SCAN"), tojson(explain.stages));
    assert.eq(bySeeing(pipeline), coll.aggregate([...pipeline, {$sort: {_id: 1}}]).toArray());
}

const plain = assertSeeks([{$group: {_id: "$a"}}], 6, 0);
assert.eq({_id: "$a"}, plain.stages[1].$groupByDistinctScan.newRoot);
assert.eq(["PROJECTION_COVERED", "DISTINCT_SCAN"], planStages(plain).map(stage => stage.stage));
assertSeeks([{$match: {a: {$gt: 2}}}, {$group: {_id: "$a"}}], 3, 0);
assertSeeks([{$group: {_id: "$d.e"}}], 4, 0);

// The first and the last of each group by the sort before it, or by their own.
const sorted = {$sort: {a: 1, b: 1}};
const first = assertSeeks([sorted, {$group: {_id: "$a", b: {$first: "$b"}, c: {$first: "$c"}}}], 6, 6);
assert.eq({_id: "$a", b: "$b", c: "$c"}, first.stages[1].$groupByDistinctScan.newRoot);
assertSeeks([sorted, {$group: {_id: "$a", b: {$first: "$b"}}}], 6, 0);
assertSeeks([sorted, {$group: {_id: "$a", b: {$last: "$b"}}}], 6, 0);
assertSeeks([{$sort: {a: -1, b: -1}}, {$group: {_id: "$a", b: {$first: "$b"}}}], 6, 0);
assertSeeks([{$sort: {"d.e": 1, b: -1}}, {$group: {_id: "$d.e", b: {$first: "$b"}}}], 4, 0);
const top = assertSeeks([{$group: {_id: "$a", b: {$top: {sortBy: {b: 1}, output: "$b"}}}}], 6, 0);
assert.eq({_id: "$a", b: "$b"}, top.stages[1].$groupByDistinctScan.newRoot);
assertSeeks([{$group: {_id: "$a", b: {$top: {sortBy: {b: -1}, output: "$b"}}}}], 6, 0);
assertSeeks([{$group: {_id: "$a", b: {$bottom: {sortBy: {b: 1}, output: "$b"}}}}], 6, 0);
assertSeeks([{$match: {a: {$in: [1, 4, 9]}}}, sorted, {$group: {_id: "$a", b: {$last: "$b"}}}], 2, 0);

// Not where more than one document counts, the order is another, or the filter asks for more.
assertSees([{$group: {_id: "$a", n: {$sum: 1}}}]);
assertSees([sorted, {$group: {_id: "$a", f: {$first: "$b"}, l: {$last: "$b"}}}]);
assertSees([{$sort: {a: 1, b: -1}}, {$group: {_id: "$a", b: {$first: "$b"}}}]);
assertSees([{$group: {_id: "$a", x: {$top: {sortBy: {b: 1}, output: "$b"}}, y: {$top: {sortBy: {b: -1}, output: "$b"}}}}]);
assertSees([{$match: {c: {$ne: "c1"}}}, {$group: {_id: "$a"}}]);
assertSees([sorted, {$limit: 70}, {$group: {_id: "$a"}}]);
assertSees([{$group: {_id: {$add: ["$a", 1]}}}]);

// Null and missing fields are one group.
assert.commandWorked(coll.insert([{_id: "null", a: null, b: 2}, {_id: "missing", b: 1}, {_id: "missing too", b: 3}]));
assertSeeks([{$group: {_id: "$a"}}], 7, 1);
assertSeeks([sorted, {$group: {_id: "$a", b: {$first: "$b"}}}], 7, 1);
assertSeeks([sorted, {$group: {_id: "$a", b: {$last: "$b"}}}], 7, 1);

// An array is a group of its own; its elements are what the index holds.
assert.commandWorked(coll.insert({_id: "array", u: [7, 8]}));
assertSees([{$group: {_id: "$u"}}]);

// A position in an array is none to a group.
assert.commandWorked(coll.createIndex({"p.0": 1}));
assert.commandWorked(coll.insert([{_id: "p", p: [1, 2]}, {_id: "q", p: [3]}]));
assertSees([{$group: {_id: "$p.0"}}]);
