/**
 * Projections of find compute new fields with the expressions of aggregation.
 * Fails when find evaluates an expression differently from $project, or a computed field slips into an exclusion.
 */
const coll = db.projection_expressions;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 3, b: [4, 5], c: {d: "x"}}));

function project(projection) {
    return coll.findOne({_id: 1}, projection);
}

assert.eq({_id: 1, sum: 8}, project({sum: {$add: ["$a", {$arrayElemAt: ["$b", 1]}]}}));
assert.eq({_id: 1, copy: [4, 5]}, project({copy: "$b"}));
assert.eq({_id: 1, a: 3, c: {e: "xy"}}, project({a: 1, "c.e": {$concat: ["$c.d", "y"]}}));
assert.eq({_id: 1, text: "literal"}, project({text: "literal"}));
assert.eq({_id: 1, one: 1}, project({one: {$literal: 1}}));
assert.eq({_id: 4}, project({_id: {$add: ["$a", 1]}}));
assert.eq({_id: 1}, project({gone: "$missing"}));
assert.eq({_id: 1, n: null}, project({n: {$add: ["$missing", 1]}}));
assert.eq({_id: 1, pair: [3, "x", null]}, project({pair: ["$a", "$c.d", "$missing"]}));
assert.eq({_id: 1, keep: 3}, project({keep: {$cond: ["$b", "$a", "$$REMOVE"]}}));
assert.eq({_id: 1}, project({keep: {$cond: ["$missing", "$a", "$$REMOVE"]}}));

// The same projection in a pipeline gives the same document.
const projection = {a: 1, size: {$size: "$b"}, nested: {upper: {$toUpper: "$c.d"}}};
assert.eq(coll.aggregate([{$project: projection}]).toArray(), coll.find({}, projection).toArray());
assert.eq({_id: 1, a: 3, size: 2, nested: {upper: "X"}}, project(projection));

// Arrays in arrays keep their form.
const nested = db.projection_expressions_nested;
nested.drop();
assert.commandWorked(nested.insert({_id: 1, a: [[{b: 1, c: 2}, {b: 3}], {b: [4, 5]}, []]}));
const within = {"a.b": {$literal: 7}};
assert.eq([[{b: 7}, {b: 7}], {b: 7}, []], nested.findOne({}, within).a);
assert.eq(nested.aggregate([{$project: within}]).toArray(), nested.find({}, within).toArray());
assert.eq([[{b: 1, c: 2}, {b: 3}], {b: [4]}, []], nested.findOne({}, {"a.b": {$slice: 1}}).a);
assert.eq([[{b: 1, c: 2}, {b: 3}]], nested.findOne({a: {$elemMatch: {0: {$exists: true}}}}, {"a.$": 1}).a);

const name = coll.getName();
function refused(codes, projection) {
    assert.commandFailedWithCode(db.runCommand({find: name, projection: projection}), codes, () => tojson(projection));
}
refused(31252, {a: 0, sum: {$add: ["$a", 1]}});
refused(31325, {a: {$unheardOf: 1}});
refused(16020, {a: {$size: ["$b", 1]}});
refused(17124, {a: {$size: "$a"}});
refused(17276, {a: "$$nope"});
