/**
 * Explaining a pipeline shows which access path it begins with and which stages follow.
 * Fails when a leading $match or $sort does not use an index, explaining writes anything, or a level shows too much.
 */
import {planHasStage, planIndexes} from "jstests/libs/plan_stages.js";

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
