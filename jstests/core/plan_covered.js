/**
 * A plan whose index holds everything that is asked for reads no documents, and returns what the documents hold.
 * Fails when such a plan fetches, when one that cannot know a value does not, or when types change on the way.
 *
 * # On a shard that owns part of a collection every document is looked at for its shard key.
 * @tags: [assumes_unsharded_collection]
 */
import {explainOfOneNode, planHasStage, planStageNames} from "jstests/libs/plan_stages.js";

const coll = db.plan_covered;
coll.drop();
assert.commandWorked(coll.createIndexes([{a: 1, b: -1}, {n: 1}, {"d.e": 1}, {tags: 1}, {h: "hashed"}]));
assert.commandWorked(coll.createIndex({s: 1}, {collation: {locale: "en", strength: 2}}));
for (let i = 0; i < 40; i++) {
    assert.commandWorked(coll.insert({
        _id: i, a: i % 4, b: "v" + i, n: NumberInt(i), d: {e: i}, tags: "t" + i, h: i, s: "S" + i, date: new Date(i),
    }));
}

function stats(filter, projection, sort) {
    let cursor = coll.find(filter, projection);
    if (sort !== undefined) {
        cursor = cursor.sort(sort);
    }
    return cursor.explain("executionStats");
}
function assertCovered(explain, returned) {
    assert(planHasStage(explain, "PROJECTION_COVERED"), tojson(planStageNames(explain)));
    assert(!planHasStage(explain, "FETCH"), tojson(planStageNames(explain)));
    assert.eq(0, explain.executionStats.totalDocsExamined);
    assert.eq(returned, explain.executionStats.nReturned);
}
function assertFetched(explain) {
    assert(!planHasStage(explain, "PROJECTION_COVERED"), tojson(planStageNames(explain)));
    assert.gt(explain.executionStats.totalDocsExamined, 0);
}

assertCovered(stats({a: 2}, {_id: 0, a: 1, b: 1}), 10);
assertCovered(stats({a: 2}, {_id: 0, b: 1}, {b: -1}), 10);
// What the ranges do not decide is asked of the keys.
assertCovered(stats({a: {$gte: 1}, b: /5$/}, {_id: 0, b: 1}), 4);
assert.eq([{a: 2, b: "v38"}, {a: 2, b: "v34"}, {a: 2, b: "v30"}],
          coll.find({a: 2, b: /^v3/}, {_id: 0, a: 1, b: 1}).sort({b: -1}).toArray());
assert.eq([{n: NumberInt(7)}], coll.find({n: 7}, {_id: 0, n: 1}).toArray());

// _id is asked for unless it is left out; what no field of the index holds; collated strings; hashes.
assertFetched(stats({a: 2}, {a: 1}));
assertFetched(stats({a: 2}, {_id: 0, a: 1, n: 1}));
assertFetched(stats({a: 2, n: 6}, {_id: 0, a: 1}));
assertFetched(stats({h: 3}, {_id: 0, h: 1}));
assertFetched(coll.find({s: "s3"}, {_id: 0, s: 1}).collation({locale: "en", strength: 2}).explain("executionStats"));

// Fields within documents, which are made anew where the key tells that they are there.
function assertCoveredWithin(explain, returned) {
    assert.eq(["PROJECTION_DEFAULT", "IXSCAN"], planStageNames(explain));
    assert.eq(0, explain.executionStats.totalDocsExamined);
    assert.eq(returned, explain.executionStats.nReturned);
}
assert.commandWorked(coll.createIndex({"w.x": 1, n: 1, "w.y.z": 1, "w.y.t": -1}));
assert.commandWorked(coll.insert([
    {_id: "w1", w: {x: 1, y: {z: 2, t: "t", more: 1}, more: 1}, n: NumberInt(1), more: 1},
    {_id: "w2", w: {x: 1, y: {z: 3}}, n: NumberInt(2)},
    {_id: "w3", w: {x: 1, y: 5}, n: NumberInt(3)},
    {_id: "w4", w: {x: 1}, n: NumberInt(4)},
]));
const within = {_id: 0, "w.x": 1, "w.y.z": 1, "w.y.t": 1, n: 1};
assertCoveredWithin(stats({"d.e": 3}, {_id: 0, "d.e": 1}), 1);
assertCoveredWithin(stats({"w.x": 1, n: 1}, within), 1);
assert.eq([{d: {e: 3}}], coll.find({"d.e": 3}, {_id: 0, "d.e": 1}).toArray());
const expected = [
    {n: NumberInt(1), w: {x: 1, y: {t: "t", z: 2}}}, {n: NumberInt(2), w: {x: 1, y: {z: 3}}},
    {n: NumberInt(3), w: {x: 1}}, {n: NumberInt(4), w: {x: 1}},
];
const sorted = v => Object.prototype.toString.call(v) !== "[object Object]" || v instanceof NumberInt
    ? v : Object.fromEntries(Object.keys(v).sort().map(k => [k, sorted(v[k])]));
assert.eq(expected.map(sorted), coll.find({"w.x": 1}, within).sort({"w.x": 1, n: 1}).toArray().map(sorted));
const grouped = [{$match: {"d.e": {$gte: 38}}}, {$group: {_id: "$d.e", n: {$sum: "$d.e"}}}];
const ofPipeline = explainOfOneNode(coll.explain("executionStats").aggregate(grouped)).stages[0].$cursor;
assert.eq({"d.e": 1, _id: 0}, ofPipeline.queryPlanner.winningPlan.transformBy);
assert.eq(0, ofPipeline.executionStats.totalDocsExamined);
assert.sameMembers([{_id: 38, n: 38}, {_id: 39, n: 39}], coll.aggregate(grouped).toArray());
// Neither the document itself nor what stands beside the field.
assertFetched(stats({"d.e": 3}, {_id: 0, d: 1}));
assertFetched(stats({"d.e": 3}, {_id: 0, "d.e": 1, "d.f": 1}));
// An array on the path, even of one element.
assert.commandWorked(coll.insert({_id: "within", d: [{e: 3}]}));
assertFetched(stats({"d.e": 3}, {_id: 0, "d.e": 1}));
assert.eq([{d: {e: 3}}, {d: [{e: 3}]}], coll.find({"d.e": 3}, {_id: 0, "d.e": 1}).sort({_id: 1}).toArray());
assert.commandWorked(coll.deleteMany({_id: /^w/}));

// A pipeline that reads only such fields is answered by keys as well.
assert.eq([{_id: 3, n: 10}], coll.aggregate([{$match: {a: 3}}, {$group: {_id: "$a", n: {$sum: 1}}}]).toArray());
assert(planHasStage(coll.explain().aggregate([{$match: {a: 3}}, {$group: {_id: "$a", n: {$sum: 1}}}]), "PROJECTION_COVERED"));

// Null may be a missing field: the documents tell.
assert.commandWorked(coll.insert([{_id: "null", a: null, b: "x"}, {_id: "missing", b: "y"}]));
assert.eq([{a: null, b: "x"}, {b: "y"}], coll.find({a: null}, {_id: 0, a: 1, b: 1}).sort({b: 1}).toArray());

// Numbers of several types have equal keys.
assertCovered(stats({n: {$lt: 5}}, {_id: 0, n: 1}), 5);
assert.commandWorked(coll.insert([{_id: "double", n: 2.0}, {_id: "long", n: NumberLong(3)}]));
assertFetched(stats({n: {$lt: 5}}, {_id: 0, n: 1}));
assert.eq(["double", "int"], coll.aggregate([
    {$match: {n: 2}}, {$project: {_id: 0, t: {$type: "$n"}}}, {$sort: {t: 1}},
]).toArray().map(doc => doc.t));

// An update that changes a type alone.
assert.commandWorked(coll.createIndex({u: 1}));
assert.commandWorked(coll.insert({_id: "u", u: NumberInt(5)}));
assertCovered(stats({u: 5}, {_id: 0, u: 1}), 1);
assert.commandWorked(coll.updateOne({_id: "u"}, {$set: {u: NumberDecimal("5")}}));
assert.eq([{u: NumberDecimal("5")}], coll.find({u: 5}, {_id: 0, u: 1}).toArray());

// Of an array there are only the elements in the index.
assertCovered(stats({tags: "t1"}, {_id: 0, tags: 1}), 1);
assert.commandWorked(coll.insert({_id: "array", tags: ["t1", "t2"]}));
assertFetched(stats({tags: "t1"}, {_id: 0, tags: 1}));
assert.eq([{tags: "t1"}, {tags: ["t1", "t2"]}], coll.find({tags: "t1"}, {_id: 0, tags: 1}).sort({_id: 1}).toArray());

// A count that an index decides reads no documents.
for (const [filter, stage, n] of [[{a: 1}, "COUNT_SCAN", 10], [{a: {$in: [1, 3]}}, "IXSCAN", 20]]) {
    const explain = coll.explain("executionStats").count(filter);
    assert(planHasStage(explain, stage) && !planHasStage(explain, "FETCH"), tojson(planStageNames(explain)));
    assert.eq(0, explain.executionStats.totalDocsExamined, tojson(filter));
    assert.eq(n, coll.count(filter));
}
