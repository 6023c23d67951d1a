/**
 * A filter of very many fields of a document of very many ends with its time limit, too.
 * Fails if the fields that are passed over on the way to one are not counted as work: it looked at no limit for ten seconds.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.wide_filters_end_in_time;
coll.drop();
const fields = {_id: 1};
for (let i = 0; i < 30000; i++) {
    fields[`f${i}`] = i;
}
assert.commandWorked(coll.insert(fields));
assert.eq(1, coll.find({f29999: 29999, f15000: 15000}).itcount());

const begun = Date.now();
const reply = db.runCommand({find: coll.getName(), filter: fields, maxTimeMS: 300});
assert(reply.ok || reply.code === ErrorCodes.MaxTimeMSExpired, tojson(reply).substring(0, 500));
assert.lt(Date.now() - begun, 15000);

// Nor is a plan made for each field, each with the whole filter, where a wildcard index stands for them all.
assert.commandWorked(coll.createIndex({"$**": 1}));
const indexed = Object.assign({}, fields);
delete indexed._id;
assert.eq(1, endsInTime(db, {find: coll.getName(), filter: indexed}, {whole: true}).cursor.firstBatch.length);
assert.commandWorked(coll.dropIndexes());

// Many conditions on one field are not all taken together for the bounds of a scan.
assert.commandWorked(coll.createIndex({f1: 1}));
const list = [...Array(50000).keys()];
const conditions = [{f1: {$in: list}}, ...list.map(() => ({f1: {$type: "number"}}))];
assert.eq(1, endsInTime(db, {find: coll.getName(), filter: {$and: conditions}}, {whole: true}).cursor.firstBatch.length);
coll.drop();

// Names that a schema requires or describes are found by one look each, and its names are told from one another so.
const names = [...Array(200000).keys()].map((i) => `f${i}`);
endsInTime(db, {find: coll.getName(), filter: {$jsonSchema: {required: names}}}, {whole: true});
// A projection of many slices is looked through for collisions, and applied, once.
const slices = Object.fromEntries(names.slice(0, 20000).map((name) => [name, {$slice: 1}]));
assert.commandWorked(coll.insert(Object.fromEntries(names.slice(0, 20000).map((name) => [name, [1, 2]]))));
const cut = endsInTime(db, {find: coll.getName(), projection: slices}, {whole: true}).cursor.firstBatch[0];
assert.eq([1], cut.f19999);
coll.drop();

// A mask of bits is not taken apart into positions.
assert.commandWorked(coll.insert({b: BinData(0, "////")}));
const mask = BinData(0, "////".repeat(3 << 20));
assert.eq(1, endsInTime(db, {find: coll.getName(), filter: {b: {$bitsAnySet: mask}}}, {whole: true}).cursor.firstBatch.length);
coll.drop();

// A phrase of a text search is looked for once, however often it is written, in texts that are folded once.
assert.commandWorked(coll.createIndex({s: "text"}));
assert.commandWorked(coll.insert({s: "a b " + "word ".repeat(200000)}));
const text = {find: coll.getName(), filter: {$text: {$search: '"word word" '.repeat(200000)}}, projection: {_id: 1}};
assert.eq(1, endsInTime(db, text, {whole: true}).cursor.firstBatch.length);
coll.drop();
