/**
 * Every stage of a pipeline and of the pipelines within it sees the variables of the command.
 * Fails when a variable is lost in a $lookup, $facet or $unionWith, or one of an outer pipeline is overwritten by an inner one.
 */
const coll = db.system_variables_and_let;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, v: 10}, {_id: 2, v: 20}, {_id: 3, v: 30}]));

function run(pipeline, variables) {
    return assert.commandWorked(db.runCommand({aggregate: coll.getName(), pipeline: pipeline, cursor: {}, let: variables})).cursor.firstBatch;
}
const matches = {$match: {$expr: {$gte: ["$v", "$$least"]}}};
assert.eq([{n: 2}], run([matches, {$count: "n"}], {least: 20}));
assert.eq([{a: [{n: 2}], b: [{n: 3}]}], run([{$facet: {a: [matches, {$count: "n"}], b: [{$count: "n"}]}}], {least: 20}));
assert.eq([{n: 4}], run([{$match: {_id: 1}}, {$unionWith: {coll: coll.getName(), pipeline: [matches]}}, {$unionWith: {coll: coll.getName(), pipeline: [{$match: {$expr: {$eq: ["$v", "$$least"]}}}]}}, {$count: "n"}], {least: 20}));
assert.eq([2], run([{$match: {_id: 1}}, {$lookup: {from: coll.getName(), pipeline: [matches], as: "m"}}], {least: 20}).map(doc => doc.m.length));

// The inner variable hides the outer one, within its own pipeline only.
const hidden = run([
    {$match: {_id: 1}},
    {$lookup: {from: coll.getName(), let: {least: "$v"}, pipeline: [{$match: {$expr: {$lte: ["$v", "$$least"]}}}], as: "m"}},
    {$set: {outer: "$$least"}},
], {least: 99});
assert.eq([1, 99], [hidden[0].m.length, hidden[0].outer]);
assert.eq([{_id: 1, x: 6}], run([{$match: {_id: 1}}, {$project: {x: {$let: {vars: {least: {$add: ["$$least", 1]}}, in: {$add: ["$$least", 2]}}}}}], {least: 3}));
