/**
 * Arithmetic in expressions keeps the narrowest type that holds the result, and null wins over everything.
 * Fails when a result has another value or type, an overflow wraps around, or a non-number is computed with.
 */
function evaluate(expression) {
    const pipeline = [{$documents: [{i: NumberInt(7), l: NumberLong(7), d: 7.5, dec: NumberDecimal("7.5"), n: null, s: "s", at: new Date(1000)}]},
                      {$project: {v: expression, t: {$type: expression}}}];
    const doc = db.aggregate(pipeline).toArray()[0];
    return [doc.t, doc.v];
}
function value(expression) {
    return evaluate(expression)[1];
}
assert.eq(["int", 14], evaluate({$add: ["$i", "$i"]}));
assert.eq(["long", NumberLong(14)], evaluate({$add: ["$i", "$l"]}));
assert.eq(["double", 14.5], evaluate({$add: ["$l", "$d"]}));
assert.eq(["decimal", NumberDecimal("15.00000000000000")], evaluate({$add: ["$d", "$dec"]}));
assert.eq(["long", NumberLong("2147483648")], evaluate({$add: [NumberInt(2147483647), NumberInt(1)]}));
assert.eq(["double", 9223372036854775808], evaluate({$add: [NumberLong("9223372036854775807"), NumberLong(1)]}));
assert.eq(["date", new Date(1007)], evaluate({$add: ["$at", "$i"]}));
assert.eq(["int", 0], evaluate({$add: []}));
assert.eq(["null", null], evaluate({$add: ["$i", "$n"]}));
assert.eq(null, value({$add: ["$i", "$missing"]}));

assert.eq(["int", 0], evaluate({$subtract: ["$i", "$i"]}));
assert.eq(["long", NumberLong(500)], evaluate({$subtract: ["$at", new Date(500)]}));
assert.eq(["date", new Date(993)], evaluate({$subtract: ["$at", "$i"]}));
assert.eq(["int", 49], evaluate({$multiply: ["$i", "$i"]}));
assert.eq(["double", 3.5], evaluate({$divide: ["$i", NumberInt(2)]}));
assert.eq(["int", 1], evaluate({$mod: ["$i", NumberInt(2)]}));
assert.eq(["double", -1.5], evaluate({$mod: [-7.5, 2]}));
assert.eq(["int", 7], evaluate({$abs: NumberInt(-7)}));
assert.eq(["double", 8], evaluate({$ceil: "$d"}));
assert.eq(["double", -8], evaluate({$floor: -7.5}));
assert.eq([2, 4, -2], [value({$round: [2.5]}), value({$round: [3.5]}), value({$round: [-2.5]})]);
assert.eq(1234.57, value({$round: [1234.567, 2]}));
assert.eq(1200, value({$round: [1234.567, -2]}));
assert.eq(-7, value({$trunc: -7.9}));
assert.eq(7.89, value({$trunc: [7.899, 2]}));
assert.eq(["int", 8], evaluate({$pow: [NumberInt(2), NumberInt(3)]}));
assert.eq(["double", 0.5], evaluate({$pow: [2, -1]}));
assert.eq([3, 3, 2], [value({$sqrt: 9}), value({$log: [8, 2]}), value({$log10: 100})]);
assert.eq([1, 0], [value({$exp: 0}), value({$ln: 1})]);
assert.eq([0, 1], [value({$sin: 0}), value({$cos: 0})]);
assert.close(180, value({$radiansToDegrees: Math.PI}));
assert.eq([NumberInt(4), NumberInt(7), NumberInt(3), NumberInt(-8)].map(Number),
          [value({$bitAnd: [NumberInt(6), NumberInt(5)]}), value({$bitOr: [NumberInt(6), NumberInt(5)]}), value({$bitXor: [NumberInt(6), NumberInt(5)]}), value({$bitNot: NumberInt(7)})]);

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{s: "s", i: 7}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused([ErrorCodes.TypeMismatch, 16554], {$add: ["$s", 1]});
refused([ErrorCodes.TypeMismatch, 16612, 16554], {$add: [new Date(), new Date()]});
refused([ErrorCodes.TypeMismatch, 16556], {$subtract: ["$s", 1]});
refused([ErrorCodes.TypeMismatch, 16555], {$multiply: ["$s", 2]});
refused([ErrorCodes.BadValue, 16608], {$divide: ["$i", 0]});
refused([ErrorCodes.TypeMismatch, 16609], {$divide: ["$s", 2]});
refused([ErrorCodes.BadValue, 16610], {$mod: ["$i", 0]});
refused([16611, ErrorCodes.TypeMismatch], {$mod: ["$s", 2]});
refused(28765, {$abs: "$s"});
refused(28714, {$sqrt: -1});
refused(28766, {$ln: 0});
refused(28764, {$pow: [0, -1]});
refused(16020, {$divide: [1]});
refused(28680, {$abs: NumberLong("-9223372036854775808")});
// The logarithm of a decimal that is no number is a double.
for (const expression of [{$ln: NumberDecimal("NaN")}, {$log10: NumberDecimal("NaN")}, {$log: [NumberDecimal("NaN"), 10]}, {$log: [10, NumberDecimal("NaN")]}]) {
    assert.eq(["double", NaN], evaluate(expression), tojson(expression));
}
