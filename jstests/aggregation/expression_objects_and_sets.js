/**
 * Object expressions read and write fields whatever their names, set expressions ignore order and repetition.
 * Fails when a field with a dot or dollar is not found, a merge keeps the older value, or a set counts an element twice.
 */
function value(expression) {
    return db.aggregate([{$documents: [{o: {a: 1, b: 2}, dotted: {$literal: {"x.y": 3, $z: 4}}, n: null, p: [1, 2, 2], q: [2, 3], nested: [[1, 2]]}]}, {$project: {v: expression}}]).toArray()[0].v;
}
assert.eq({a: 1, b: 9, c: 3}, value({$mergeObjects: ["$o", {b: 9}, {c: 3}]}));
assert.eq({a: 1, b: 2}, value({$mergeObjects: ["$o", "$n", "$missing"]}));
assert.eq({}, value({$mergeObjects: ["$n"]}));
assert.eq([{k: "a", v: 1}, {k: "b", v: 2}], value({$objectToArray: "$o"}));
assert.eq(null, value({$objectToArray: "$n"}));
assert.eq({a: 1, b: 2}, value({$arrayToObject: {$objectToArray: "$o"}}));
assert.eq([3, 4, 1], [value({$getField: {field: "x.y", input: "$dotted"}}), value({$getField: {field: {$literal: "$z"}, input: "$dotted"}}), value({$getField: {field: "a", input: "$o"}})]);
assert.eq(undefined, value({$getField: {field: "none", input: "$o"}}));
assert.eq({a: 1, b: 2, "c.d": 5}, value({$setField: {field: "c.d", input: "$o", value: 5}}));
assert.eq({a: 7, b: 2}, value({$setField: {field: "a", input: "$o", value: 7}}));
assert.eq({b: 2}, value({$setField: {field: "a", input: "$o", value: "$$REMOVE"}}));
assert.eq({a: 1}, value({$unsetField: {field: "b", input: "$o"}}));

assert.eq([1, 2, 3], value({$sortArray: {input: {$setUnion: ["$p", "$q"]}, sortBy: 1}}));
assert.eq([2], value({$setIntersection: ["$p", "$q"]}));
assert.eq([1], value({$setDifference: ["$p", "$q"]}));
assert.eq([true, false], [value({$setEquals: ["$p", [2, 1]]}), value({$setEquals: ["$p", "$q"]})]);
assert.eq([true, false], [value({$setIsSubset: [[2], "$p"]}), value({$setIsSubset: ["$q", "$p"]})]);
assert.eq([], value({$setIntersection: ["$nested", "$p"]}));
assert.eq([null, null, null], [value({$setUnion: ["$p", "$n"]}), value({$setIntersection: ["$p", "$n"]}), value({$setDifference: ["$n", "$p"]})]);

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{s: "s", p: [1]}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused(40400, {$mergeObjects: ["$s"]});
refused(40390, {$objectToArray: "$s"});
refused([5654602, 3041704], {$getField: {field: 5, input: "$p"}});
refused(17043, {$setUnion: ["$s", "$p"]});
refused(17047, {$setIntersection: ["$s", "$p"]});
refused(17048, {$setDifference: ["$s", "$p"]});
refused(17044, {$setEquals: ["$s", "$p"]});
refused(17046, {$setIsSubset: ["$s", "$p"]});
refused(17045, {$setEquals: ["$p"]});
