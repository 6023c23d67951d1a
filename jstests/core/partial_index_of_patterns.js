/**
 * The filter of a partial index may hold regular expressions in $in, and nowhere else. It is matched while a document is written and
 * nothing can end it, so a match that takes long gives up by itself, each time at the same step.
 * Fails if such a match holds the collection without end, or a document is left in the index or out of it.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.partial_index_of_patterns;
coll.drop();
const slow = /a.*b.*c.*d/;
for (const a of [slow, {$regex: "x"}, {$all: [slow]}, {$all: ["x", slow]}]) {
    assert.commandFailedWithCode(coll.createIndex({x: 1}, {partialFilterExpression: {a}}), ErrorCodes.CannotCreateIndex, tojson(a));
}
assert.commandWorked(coll.createIndex({x: 1}, {partialFilterExpression: {a: {$in: [slow, /^y/]}}}));
const a = "ab".repeat(50000) + "dcx";
const run = command => endsInTime(db, command, {whole: true});
run({insert: coll.getName(), documents: [{_id: 0, x: 0, a}, {_id: 1, x: 1, a: "abcd"}, {_id: 2, x: 2, a: "y"}, {_id: 3, x: 3, a: "x"}]});
const indexed = () => coll.find({}).hint({x: 1}).toArray().map(d => d._id).sort();
assert.eq([1, 2], indexed());
run({update: coll.getName(), updates: [{q: {_id: 0}, u: {$set: {x: 5}}}, {q: {_id: 3}, u: {$set: {a: "yx"}}}, {q: {_id: 1}, u: {$set: {a}}}]});
assert.eq([2, 3], indexed());
assert(run({validate: coll.getName()}).valid);
run({delete: coll.getName(), deletes: [{q: {_id: {$in: [0, 1, 2]}}, limit: 0}]});
assert.eq([3], indexed());
