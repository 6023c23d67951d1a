/**
 * Expressions and stages that are short to send and ask for very much end with their time limit, or their limit of memory.
 * Fails if a result is made before it is found to be too long, if a text is compared with another at each of its places, or if names are
 * copied for each name: it took minutes without a look at a limit, or all memory.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.small_expressions_end_in_time;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, s: "a".repeat(1000)}))));

const over = (pipeline, options) => endsInTime(db, {aggregate: coll.getName(), pipeline, cursor: {}}, options);
const value = (expression, options) => over([{$limit: 1}, {$project: {_id: 0, r: expression}}], options);
const whole = expression => value(expression, {whole: true}).cursor.firstBatch[0].r;
const memory = [ErrorCodes.BSONObjectTooLarge, 10334, 17419, 17420, ErrorCodes.ExceededMemoryLimit];

// A million times a million bytes.
const long = "a".repeat(1000000);
assert.eq(0, value({$replaceAll: {input: long, find: "a", replacement: long}}, {codes: [16493]}).ok);
assert.eq("-a-b-", whole({$replaceAll: {input: "ab", find: "", replacement: "-"}}));

const cells = {$zip: {inputs: [{$range: [0, 5000000]}, ...Array(1000).fill([])], useLongestLength: true}};
assert.eq(0, value(cells, {codes: memory}).ok);
assert.eq([[1, 3], [2, null]], whole({$zip: {inputs: [[1, 2], [3]], useLongestLength: true}}));

// Each place of one text is the beginning of half of the other.
for (const operator of ["$indexOfBytes", "$indexOfCP"]) {
    assert.eq(-1, whole({[operator]: ["a".repeat(4000000), "a".repeat(2000000) + "b"]}), operator);
}
assert.eq([3, 3], [whole({$indexOfBytes: ["caf\u00e9", "\u00e9"]}), whole({$indexOfCP: ["caf\u00e9", "\u00e9"]})]);

const vars = {};
for (let i = 0; i < 50000; i++) {
    vars[`v${i}`] = i;
}
assert.eq(50000, whole({$let: {vars, in: {$add: ["$$v1", "$$v49999"]}}}));
assert.eq(50000, whole({$add: [{$let: {vars: {v1: 1}, in: "$$v1"}}, 49999]}));

over([{$bucket: {groupBy: {$concat: [long, "$s"]}, boundaries: [...Array(50000).keys()].map(i => String(i).padStart(6, "0")), default: "x"}}],
     {codes: memory});
over([{$lookup: {from: coll.getName(), let: vars, pipeline: [{$match: {$expr: {$eq: ["$_id", "$$v1"]}}}], as: "l"}}]);
for (const what of [{$sum: {$range: [0, 6000000]}}, {$maxN: {n: 1, input: {$range: [0, 6000000]}}},
                    {$setIsSubset: [{$range: [0, 6000000]}, {$range: [0, 6000000]}]}]) {
    value(what, {codes: memory});
}
coll.drop();
