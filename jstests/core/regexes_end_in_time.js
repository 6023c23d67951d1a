/**
 * A match of a regular expression ends with the time limit of its operation, too, and finds what it finds where it is made so that it can.
 * Fails if a match cannot be interrupted: it took the cube of the text's length, or had no end, and held a worker meanwhile.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.regexes_end_in_time;
coll.drop();
assert.commandWorked(coll.insert([{_id: 0, s: "ab".repeat(100000) + "dcx"}, {_id: 1, s: "ab".repeat(20)}]));

// Of repeated groups the library bounds the steps.
const runs = command => endsInTime(db, command, {codes: [51156]});
const find = filter => ({find: coll.getName(), filter});

// What a match needs is in the text, but not in that order. The cube of the length, and no end at all; in a filter, in a list, in a schema, and in expressions.
for (const regex of [/a.*b.*c.*d/, /(a|b|ab)*c/, /(.*)\1x/, /a.*?b.*?c.*?d/]) {
    runs(find({s: regex}));
    runs(find({s: {$in: [regex, "x"]}}));
    for (const operator of ["$regexMatch", "$regexFind", "$regexFindAll"]) {
        runs(find({_id: 0, $expr: {$eq: [{[operator]: {input: "$s", regex}}, 1]}}));
    }
}
runs(find({$jsonSchema: {properties: {s: {pattern: "a.*b.*c.*d"}}}}));
// What is interrupted where it must be finds what it finds.
assert.eq(1, coll.find({s: /^a.*b.*a.*x$/}).itcount());
assert.eq(1, coll.find({_id: 1, s: /a.*b.*a.*b.*b$/}).itcount());
assert.eq(0, coll.find({_id: 1, s: /a.*b.*a.*b.*a$/}).itcount());
const found = {$regexFind: {input: {$concat: ["$s", "cd"]}, regex: "(b)(a)?.*(c.*d)"}};
assert.eq([{found: {match: "b" + "ab".repeat(99999) + "dcxcd", idx: 1, captures: ["b", "a", "cd"]}}],
          coll.aggregate([{$match: {_id: 0}}, {$project: {_id: 0, found}}]).toArray());

// A parenthesis in a class or among what is quoted is text, and what stands between a group and its repetition may be nothing.
const list = db.regexes_end_in_time_list;
list.drop();
assert.commandWorked(list.insert({s: Array(5000).fill("a".repeat(29) + "!")}));
for (const s of [/^(?:[)]?a+)+$/, {$regex: "^(a+) +$", $options: "x"}, {$regex: "^(?:\\Q)\\E?a+)+$"}, {$regex: "^(a+)(?#()+$"}]) {
    runs({find: list.getName(), filter: {s}});
}
list.drop();

// Patterns cost to be compiled.
runs(find({s: {$in: [...Array(3000).keys()].map(i => new RegExp(`a.*${i}.*b`))}}));

coll.drop();
