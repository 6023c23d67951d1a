/**
 * A path of many positions through arrays in arrays leads to each of them in as many ways as Fibonacci's numbers say, and whatever
 * follows it ends nevertheless.
 * Fails if a walk goes into an array again by the same part of the path: none of these commands ends, and an insert holds the collection.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.positions_end_in_time;
coll.drop();
let nested = 1;
for (let i = 0; i < 80; i++) {
    nested = [{0: nested}];
}
// Too many names for any way to lead to the innermost value, and enough for one.
const path = (names) => "a" + ".0".repeat(names);
assert.commandWorked(coll.createIndex({b: 1}, {partialFilterExpression: {[path(170)]: {$gt: 5}}}));
endsInTime(db, {insert: coll.getName(), documents: [{_id: 1, a: nested, b: 1}]}, {whole: true});
const found = (names) => endsInTime(db, {find: coll.getName(), filter: {[path(names)]: 1}}, {whole: true}).cursor.firstBatch.length;
assert.eq([0, 1, 1, 0], [79, 80, 160, 161].map(found));
const distinct = (names) => endsInTime(db, {distinct: coll.getName(), key: path(names)}, {whole: true}).values;
assert(distinct(120).includes(1), tojson(distinct(120)));
assert.eq([], distinct(170));
const join = {from: coll.getName(), localField: path(170), foreignField: path(170), as: "found"};
const joined = endsInTime(db, {aggregate: coll.getName(), pipeline: [{$lookup: join}], cursor: {}}, {whole: true});
assert.eq(1, joined.cursor.firstBatch.length);
coll.drop();

// Nor does a distinct over large arrays go on beyond its limit or the size that an answer may have.
const arrays = db.positions_end_in_time_arrays;
arrays.drop();
for (let i = 0; i < 4; i++) {
    assert.commandWorked(arrays.insert({_id: i, x: [...Array(500000).keys()].map((n) => n * 4 + i)}));
}
endsInTime(db, {distinct: arrays.getName(), key: "x"}, {codes: [17217]});
assert.eq(500000, arrays.distinct("x", {_id: 0}).length);
arrays.drop();
