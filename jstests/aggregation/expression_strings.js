/**
 * String expressions count and cut by characters or by bytes, and know only ASCII case.
 * Fails when a character is cut in two, an index is counted from elsewhere, or a non-string is taken for one.
 */
function value(expression) {
    return db.aggregate([{$documents: [{s: "Hello", u: "héllo€😀", n: null, i: 5}]}, {$project: {v: expression}}]).toArray()[0].v;
}
assert.eq("Hello!", value({$concat: ["$s", "!"]}));
assert.eq(null, value({$concat: ["$s", "$n"]}));
assert.eq("", value({$concat: []}));
assert.eq(["HELLO", "hello", ""], [value({$toUpper: "$s"}), value({$toLower: "$s"}), value({$toUpper: "$n"})]);
assert.eq("HéLLO€😀", value({$toUpper: "$u"}));
assert.eq([7, 13, 0], [value({$strLenCP: "$u"}), value({$strLenBytes: "$u"}), value({$strLenCP: ""})]);
assert.eq(["llo€", "ell"], [value({$substrCP: ["$u", 2, 4]}), value({$substrBytes: ["$s", 1, 3]})]);
assert.eq(["llo", "", ""], [value({$substrBytes: ["$s", 2, -1]}), value({$substrBytes: ["$s", 9, 3]}), value({$substrCP: ["$n", 0, 1]})]);
assert.eq([3, 4, -1, null], [value({$indexOfCP: ["$u", "lo"]}), value({$indexOfBytes: ["$u", "lo"]}), value({$indexOfCP: ["$u", "x"]}), value({$indexOfCP: ["$n", "x"]})]);
assert.eq([-1, 3], [value({$indexOfCP: ["$s", "l", 0, 2]}), value({$indexOfCP: ["$s", "l", 3]})]);
assert.eq([["a", "b", "", "c"], ["Hello"]], [value({$split: ["a-b--c", "-"]}), value({$split: ["$s", "x"]})]);
assert.eq(["x y", "x y ", " x y"], [value({$trim: {input: " x y "}}), value({$ltrim: {input: " x y "}}), value({$rtrim: {input: " x y "}})]);
assert.eq("ell", value({$trim: {input: "$s", chars: "Ho"}}));
assert.eq([0, -1, 1], [value({$strcasecmp: ["HELLO", "$s"]}), value({$strcasecmp: ["a", "B"]}), value({$strcasecmp: ["b", "$n"]})]);
assert.eq("HeLlo", value({$replaceOne: {input: "$s", find: "l", replacement: "L"}}));
assert.eq("HeLLo", value({$replaceAll: {input: "$s", find: "l", replacement: "L"}}));
assert.eq(null, value({$replaceAll: {input: "$n", find: "l", replacement: "L"}}));
assert.eq([true, false], [value({$regexMatch: {input: "$s", regex: /^h/i}}), value({$regexMatch: {input: "$s", regex: "^h"}})]);
assert.eq({match: "ll", idx: 2, captures: []}, value({$regexFind: {input: "$u", regex: "l+"}}));
assert.eq([{match: "ab", idx: 0, captures: ["b"]}, {match: "ac", idx: 3, captures: ["c"]}], value({$regexFindAll: {input: "ab-ac", regex: /a(.)/}}));
assert.eq([null, []], [value({$regexFind: {input: "$s", regex: "x"}}), value({$regexFindAll: {input: "$n", regex: "x"}})]);

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{s: "é", i: 7}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused(16702, {$concat: ["$s", "$i"]});
refused(34471, {$strLenCP: "$i"});
refused([34473, 34471], {$strLenBytes: "$missing"});
refused(28656, {$substrBytes: ["$s", 1, 1]});
refused(34450, {$substrCP: ["$s", "x", 1]});
refused(34452, {$substrCP: ["$s", 0, "x"]});
refused(40085, {$split: ["$i", "x"]});
refused(40087, {$split: ["$s", ""]});
refused(50699, {$trim: {input: "$i"}});
refused(40091, {$indexOfBytes: ["$i", "x"]});
refused(40093, {$indexOfCP: ["$i", "x"]});
refused(10503904, {$replaceOne: {input: "$i", find: "x", replacement: "y"}});
refused(51104, {$regexMatch: {input: "$i", regex: "x"}});
refused(51105, {$regexMatch: {input: "$s", regex: 5}});
refused(51111, {$regexMatch: {input: "$s", regex: "("}});
