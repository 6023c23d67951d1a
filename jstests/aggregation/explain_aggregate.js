/**
 * Explaining a pipeline shows which access path it begins with and which stages follow.
 * Fails when a leading $match or $sort does not use an index, explaining writes anything, or a level shows too much.
 */
import {explainOfOneNode, planHasStage, planIndexes} from "jstests/libs/plan_stages.js";

const coll = db.explain_aggregate;
const target = db.explain_aggregate_target;
coll.drop();
target.drop();
assert.commandWorked(coll.insert([...Array(50).keys()].map(i => ({_id: i, a: i % 5, b: i}))));
assert.commandWorked(coll.createIndex({a: 1}));

function explain(pipeline, verbosity) {
    return assert.commandWorked(coll.explain(verbosity || "queryPlanner").aggregate(pipeline));
}
assert.eq(["a_1"], planIndexes(explain([{$match: {a: 3}}, {$group: {_id: "$b"}}])));
assert(planHasStage(explain([{$match: {b: 3}}, {$set: {c: 1}}]), "COLLSCAN"));
assert.eq(["a_1"], planIndexes(explain([{$sort: {a: 1}}, {$set: {c: 1}}, {$match: {a: {$gte: 2}}}])));
assert.eq([], planIndexes(explain([{$set: {a: 1}}, {$match: {a: 3}}])));

// What the stages read is all that documents bring along; a $project at the front that only keeps fields is the query's own.
function projection(pipeline) {
    const explained = explainOfOneNode(explain(pipeline, "executionStats"));
    const winner = (explained.stages === undefined ? explained : explained.stages[0].$cursor).queryPlanner.winningPlan;
    const plan = winner.stage === "SHARDING_FILTER" ? winner.inputStage : winner;
    return [plan.stage, plan.transformBy, explained.stages === undefined ? 0 : explained.stages.length - 1];
}
const group = {$group: {_id: "$b", n: {$sum: "$a"}}};
// Whose document it is, only the document says where its shard key is not in the index.
const entry = db.getSiblingDB("config").collections.findOne({_id: coll.getFullName()});
const sharded = entry && !entry.unsplittable;
const covered = sharded ? "PROJECTION_SIMPLE" : "PROJECTION_COVERED";
assert.eq(["PROJECTION_SIMPLE", {a: 1, b: 1, _id: 0}, 1], projection([{$match: {a: 3}}, group]));
assert.eq(["PROJECTION_SIMPLE", {a: 1, _id: 0}, 1], projection([{$group: {_id: "$a.x", n: {$sum: "$a.y"}}}]));
assert.eq([covered, {a: 1, _id: 0}, 1], projection([{$match: {a: 3}}, {$group: {_id: "$a", n: {$sum: 1}}}]));
assert.eq(["PROJECTION_SIMPLE", {_id: true, a: true}, 0], projection([{$match: {a: 3}}, {$project: {a: 1}}]));
assert.eq([covered, {a: true, _id: false}, 0], projection([{$match: {a: 3}}, {$project: {_id: 0, a: 1}}]));
assert.eq(["PROJECTION_DEFAULT", {a: {x: true}, _id: false}, 0], projection([{$project: {_id: 0, "a.x": 1}}]));
assert.eq(["PROJECTION_SIMPLE", {_id: 1, a: 1, b: 1}, 1], projection([{$project: {a: 1, c: "$b"}}]));
// On several shards it comes after their results are merged.
assert.eq(sharded ? ["SORT", undefined, 0] : ["PROJECTION_SIMPLE", {_id: true, b: true}, 0],
          projection([{$sort: {b: 1}}, {$limit: 3}, {$project: {b: 1}}]));
assert.eq(["COLLSCAN", undefined, 1], projection([{$project: {a: 0}}]));
assert.eq(["COLLSCAN", undefined, 1], projection([{$group: {_id: null, all: {$push: "$$ROOT"}}}]));
assert.eq(["COLLSCAN", undefined, 1], projection([{$count: "n"}]));
if (!sharded) {
    assert.eq(["PROJECTION_SIMPLE", {b: 1, _id: 0}, 2], projection([
        {$lookup: {from: target.getName(), let: {b: "$b"}, pipeline: [{$match: {$expr: {$eq: ["$b", "$$b"]}}}], as: "found"}},
        {$group: {_id: "$found"}},
    ]).map((v, i) => i === 1 ? {b: v.b, _id: v._id} : v));
}

// It gives what the stage gives.
const shapes = db.explain_aggregate_shapes;
shapes.drop();
assert.commandWorked(shapes.insert([
    {_id: 1, a: {x: 1, y: 2}, b: 1}, {_id: 2, a: [{x: 1}, 5, [{x: 2, y: 3}], {y: 1}]}, {_id: 3, a: 5}, {_id: 4, a: {}}, {_id: 5, b: [], a: []},
    {b: {x: {z: 1}}, _id: {x: 6}}, {_id: 7, a: [[1, [{x: 1}]]], "": 1},
]));
for (const project of [{a: 1}, {"a.x": 1}, {_id: 0, "a.x": 1, b: 1}, {a: {x: 1, y: true}}, {"b.x.z": 1, _id: 1}, {"a.0": 1, _id: 0}, {_id: 1}, {x: 1}]) {
    const pushed = shapes.aggregate([{$sort: {_id: 1}}, {$project: project}]).toArray();
    assert.eq(shapes.aggregate([{$sort: {_id: 1}}, {$_internalInhibitOptimization: {}}, {$project: project}]).toArray(), pushed, tojson(project));
}
assert.eq([{a: 0}, {a: 0}], shapes.aggregate([{$project: {_id: 0, a: {$literal: 0}}}, {$limit: 2}]).toArray());
assert.eq([{_id: 1}, {_id: 2}], shapes.aggregate([{$sort: {_id: 1}}, {$limit: 2}, {$project: {_id: 1}}]).toArray());

// The form of the command itself.
assert.commandWorked(db.runCommand({aggregate: coll.getName(), pipeline: [{$match: {a: 1}}], explain: true}));
const executed = tojson(explain([{$match: {a: 3}}, {$group: {_id: "$a", n: {$sum: 1}}}], "executionStats"));
assert(executed.includes('"executionStats"') && executed.includes('"nReturned"'), executed);
assert(!tojson(explain([{$match: {a: 3}}])).includes('"executionStats"'));

// What would be written is not.
explain([{$match: {}}, {$merge: target.getName()}]);
explain([{$match: {}}, {$out: target.getName()}]);
assert.eq(0, target.find().itcount());
assert.commandFailedWithCode(db.runCommand({explain: {aggregate: coll.getName(), pipeline: [{$merge: target.getName()}], cursor: {}}, verbosity: "executionStats"}), [51184, 51029]);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$unheardOf: 1}], explain: true}), 40324);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: []}), ErrorCodes.FailedToParse);
