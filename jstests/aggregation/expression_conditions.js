/**
 * Conditions choose between values, and only what is chosen is evaluated.
 * Fails when false, null, zero or missing counts as true, another branch is taken, or one that was not chosen raises its error.
 */
function value(expression) {
    return db.aggregate([{$documents: [{t: true, z: 0, n: null, s: "", a: [], i: 5}]}, {$project: {v: expression}}]).toArray()[0].v;
}
// False, null, zero and missing are false; an empty string and an empty array are not.
for (const [operand, truth] of [["$t", true], ["$z", false], ["$n", false], ["$missing", false], ["$s", true], ["$a", true], [NumberDecimal("0"), false], [false, false]]) {
    assert.eq(truth ? "yes" : "no", value({$cond: [operand, "yes", "no"]}), () => tojson(operand));
    assert.eq(!truth, value({$not: [operand]}), () => tojson(operand));
    assert.eq(truth, value({$and: [operand, true]}), () => tojson(operand));
    assert.eq(truth, value({$or: [operand, false]}), () => tojson(operand));
}
assert.eq([true, false], [value({$and: []}), value({$or: []})]);
assert.eq("then", value({$cond: {if: {$gt: ["$i", 3]}, then: "then", else: "else"}}));
assert.eq([5, "d", null, "last"], [value({$ifNull: ["$i", "d"]}), value({$ifNull: ["$missing", "d"]}), value({$ifNull: ["$n", "$n"]}), value({$ifNull: ["$n", "$missing", "last"]})]);

const cases = {$switch: {branches: [{case: {$lt: ["$i", 0]}, then: "negative"}, {case: {$lt: ["$i", 10]}, then: "small"}, {case: true, then: "large"}]}};
assert.eq("small", value(cases));
assert.eq("default", value({$switch: {branches: [{case: "$z", then: 1}], default: "default"}}));

// What is not chosen is not evaluated.
const fails = {$divide: ["$i", "$z"]};
assert.eq("no", value({$cond: ["$z", fails, "no"]}));
assert.eq(5, value({$ifNull: ["$i", fails]}));
assert.eq(false, value({$and: ["$z", fails]}));
assert.eq(true, value({$or: ["$t", fails]}));
assert.eq("small", value({$switch: {branches: [{case: {$lt: ["$i", 10]}, then: "small"}, {case: fails, then: "x"}]}}));

// Comparisons go over all types.
assert.eq([true, false, true, true, -1, 0, 1],
          [value({$lt: ["$i", "$s"]}), value({$gt: ["$i", "$s"]}), value({$ne: ["$i", "5"]}), value({$eq: ["$i", NumberLong(5)]}), value({$cmp: [1, 2]}), value({$cmp: ["$a", []]}), value({$cmp: ["$n", "$missing"]})]);
assert.eq(9, value({$let: {vars: {x: {$add: ["$i", 4]}}, in: "$$x"}}));
assert.eq("$i", value({$literal: "$i"}));

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{i: 7}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused(17080, {$cond: {then: 1, else: 2}});
refused(17081, {$cond: {if: 1, else: 2}});
refused(17082, {$cond: {if: 1, then: 2}});
refused(17083, {$cond: {if: 1, then: 2, else: 3, more: 4}});
refused(16020, {$cond: [1, 2]});
refused(1257300, {$ifNull: ["$i"]});
refused(40068, {$switch: {branches: []}});
refused(40060, {$switch: 1});
refused(40061, {$switch: {branches: 1}});
refused(40064, {$switch: {branches: [{then: 1}]}});
refused(40065, {$switch: {branches: [{case: true}]}});
refused(40066, {$switch: {branches: [{case: {$eq: ["$i", 1]}, then: 1}]}});
refused(16874, {$let: 1});
// An array counts as an object of positions, which name no variable.
refused(ErrorCodes.FailedToParse, {$let: {vars: [1, 2], in: 1}});
assert.eq(1, value({$let: {vars: [], in: 1}}));
refused(16876, {$let: {in: 1}});
refused(16877, {$let: {vars: {}}});
