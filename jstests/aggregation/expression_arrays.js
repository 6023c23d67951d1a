/**
 * Array expressions make, cut, search and fold arrays.
 * Fails when an index from the end, an empty array, a missing one or an out-of-range position gives another result.
 */
function value(expression) {
    return db.aggregate([{$documents: [{a: [1, 2, 3, 4], e: [], n: null, o: [{k: 2}, {k: 1}], s: "s"}]}, {$project: {v: expression}}]).toArray()[0].v;
}
assert.eq([1, 4, undefined, undefined], [value({$arrayElemAt: ["$a", 0]}), value({$arrayElemAt: ["$a", -1]}), value({$arrayElemAt: ["$a", 9]}), value({$arrayElemAt: ["$a", -9]})]);
assert.eq([null, 1, 4, undefined], [value({$arrayElemAt: ["$n", 0]}), value({$first: "$a"}), value({$last: "$a"}), value({$first: "$e"})]);
assert.eq([1, 2, 3, 4, 9], value({$concatArrays: ["$a", [9]]}));
assert.eq(null, value({$concatArrays: ["$a", "$n"]}));
assert.eq([2, 4], value({$filter: {input: "$a", as: "x", cond: {$eq: [{$mod: ["$$x", 2]}, 0]}}}));
assert.eq([2], value({$filter: {input: "$a", cond: {$eq: [{$mod: ["$$this", 2]}, 0]}, limit: 1}}));
assert.eq([2, 3, 4, 5], value({$map: {input: "$a", as: "x", in: {$add: ["$$x", 1]}}}));
assert.eq(10, value({$reduce: {input: "$a", initialValue: 0, in: {$add: ["$$value", "$$this"]}}}));
assert.eq("-", value({$reduce: {input: "$e", initialValue: "-", in: "$$this"}}));
assert.eq([[1, 2], [3, 4], [2, 3], [4]], [value({$slice: ["$a", 2]}), value({$slice: ["$a", -2]}), value({$slice: ["$a", 1, 2]}), value({$slice: ["$a", -1, 5]})]);
assert.eq([4, 0], [value({$size: "$a"}), value({$size: "$e"})]);
assert.eq([true, false], [value({$in: [3, "$a"]}), value({$in: [9, "$a"]})]);
assert.eq([2, -1, null], [value({$indexOfArray: ["$a", 3]}), value({$indexOfArray: ["$a", 3, 0, 2]}), value({$indexOfArray: ["$n", 3]})]);
assert.eq([4, 3, 2, 1], value({$reverseArray: "$a"}));
assert.eq([[0, 1, 2], [5, 3, 1], []], [value({$range: [0, 3]}), value({$range: [5, 0, -2]}), value({$range: [3, 0]})]);
assert.eq([[1, "x"], [2, "y"]], value({$zip: {inputs: [[1, 2, 3], ["x", "y"]]}}));
assert.eq([[1, "x"], [2, "y"], [3, "-"]], value({$zip: {inputs: [[1, 2, 3], ["x", "y"]], useLongestLength: true, defaults: [0, "-"]}}));
assert.eq([{k: 1}, {k: 2}], value({$sortArray: {input: "$o", sortBy: {k: 1}}}));
// What is missing counts as null, and equals stay in their order.
assert.eq([{b: 1}, {k: null}, {b: 2}, {k: 1}], value({$sortArray: {input: [{k: 1}, {b: 1}, {k: null}, {b: 2}], sortBy: {k: 1}}}));
assert.eq([4, 3, 2, 1], value({$sortArray: {input: "$a", sortBy: -1}}));
assert.eq([[4, 3], [1, 2], [3, 4], [1]], [value({$maxN: {input: "$a", n: 2}}), value({$minN: {input: "$a", n: 2}}), value({$lastN: {input: "$a", n: 2}}), value({$firstN: {input: "$a", n: 1}})]);
assert.eq([true, false, true], [value({$isArray: "$a"}), value({$isArray: "$s"}), value({$isArray: [[1]]})]);
assert.eq([10, 2.5, 4, 1], [value({$sum: "$a"}), value({$avg: "$a"}), value({$max: "$a"}), value({$min: "$a"})]);
assert.eq([true, false, false, true], [value({$allElementsTrue: ["$a"]}), value({$anyElementTrue: ["$e"]}), value({$allElementsTrue: [[1, 0]]}), value({$anyElementTrue: [[0, 1]]})]);
assert.eq({a: 1, b: 2}, value({$arrayToObject: [[["a", 1], ["b", 2]]]}));
assert.eq({a: 1}, value({$arrayToObject: [[{k: "a", v: 1}]]}));

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{a: [1], s: "s"}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused(17124, {$size: "$s"});
refused(17124, {$size: "$missing"});
refused(28689, {$arrayElemAt: ["$s", 0]});
refused(28690, {$arrayElemAt: ["$a", "x"]});
refused(28691, {$arrayElemAt: ["$a", 1.5]});
refused(28664, {$concatArrays: ["$a", "$s"]});
refused(28651, {$filter: {input: "$s", cond: true}});
refused(16883, {$map: {input: "$s", in: 1}});
refused(40080, {$reduce: {input: "$s", initialValue: 0, in: 1}});
refused(40081, {$in: [1, "$s"]});
refused(40090, {$indexOfArray: ["$s", 1]});
refused(34435, {$reverseArray: "$s"});
refused(34449, {$range: [0, 5, 0]});
refused(28724, {$slice: ["$s", 1]});
refused(40386, {$arrayToObject: "$s"});
refused(34468, {$zip: {inputs: ["$s"]}});
