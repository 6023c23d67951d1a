/**
 * Documents whose keys, or whose validator, take long are written once, whole, and with the same refusals as any.
 * It fails if such a document is written twice or under another _id than the one reported, if an index lacks keys of it or keeps
 * some that it has no more, if the documents beside it in a batch suffer, or if a slow validator's verdict is of another document.
 */
const coll = db.documents_with_long_keys;
coll.drop();
assert.commandWorked(coll.createIndex({s: "text"}));
assert.commandWorked(coll.createIndex({"w.$**": 1}));
assert.commandWorked(coll.createIndex({a: 1, n: 1}));

const words = (first, count) => Array.from({length: count}, (_, i) => "w" + (first + i)).join(" ");
const long = (first) => ({
    s: words(first, 15000),
    w: Object.fromEntries(Array.from({length: 15000}, (_, i) => ["f" + (first + i), i])),
    a: Array.from({length: 30000}, (_, i) => first + i),
});
const search = (word) => coll.find({$text: {$search: word}}).toArray().map(d => d.n);
const valid = () => {
    const checked = assert.commandWorked(coll.validate({full: true}));
    assert(checked.valid, tojson(checked));
};

// The _id is made by the server where none is sent.
const documents = [{n: 1}, {n: 2, ...long(0)}, {n: 3}, {n: 4, ...long(100000)}, {n: 5}];
const inserted = assert.commandWorked(db.runCommand({insert: coll.getName(), documents}));
assert.eq(5, inserted.n);
assert.eq([1, 2, 3, 4, 5], coll.find({}, {n: 1}).sort({n: 1}).toArray().map(d => d.n));
assert.eq([2], search("w14999"));
assert.eq([4], search("w100000"));
assert.eq([4], coll.find({"w.f100007": 7}).toArray().map(d => d.n));
assert.eq([2], coll.find({a: 29999}).hint({a: 1, n: 1}).toArray().map(d => d.n));
valid();

// Updates of one and of many take out the keys of before.
assert.commandWorked(coll.update({n: 2}, {$set: long(200000)}));
assert.eq([], search("w14999"));
assert.eq([2], search("w200000"));
assert.commandWorked(coll.update({n: {$gt: 1}}, {$set: {s: words(300000, 15000)}}, {multi: true}));
assert.eq([2, 3, 4, 5], search("w300000").sort());
valid();

// An upsert reports the _id under which its document is.
const upsert = assert.commandWorked(db.runCommand(
    {update: coll.getName(), updates: [{q: {n: 6}, u: {$set: long(400000)}, upsert: true}]}));
assert.eq(1, upsert.upserted.length);
assert.eq([upsert.upserted[0]._id], coll.find({n: 6}).toArray().map(d => d._id));
const changed = coll.findAndModify({query: {n: 7}, update: {$set: long(500000)}, upsert: true, new: true});
assert.eq([changed._id], coll.find({n: 7}).toArray().map(d => d._id));
valid();

// A refusal is that document's alone.
const refused = db.runCommand({
    insert: coll.getName(),
    documents: [{n: 8, ...long(600000)}, {n: 9, a: [1], s: words(0, 150000)}, {n: 10, ...long(700000)}],
    ordered: false,
});
assert.eq([16733], refused.writeErrors.map(e => e.code), tojson(refused.writeErrors.map(e => e.errmsg.substring(0, 100))));
assert.eq(1, refused.writeErrors[0].index);
assert.eq([8, 10], coll.find({n: {$gte: 8}}).sort({n: 1}).toArray().map(d => d.n));

assert.eq(1, coll.deleteOne({n: 8}).deletedCount);
assert.eq([], search("w600000"));
assert.commandWorked(coll.remove({n: {$gt: 1}}));
assert.eq([1], coll.find().toArray().map(d => d.n));
assert.eq([], search("w300000"));
valid();

// A validator that takes long.
const checked = db.documents_with_long_keys_checked;
checked.drop();
const sum = {$reduce: {input: {$range: [0, 100000]}, initialValue: 0, in: {$add: ["$$value", 1]}}};
assert.commandWorked(db.createCollection(checked.getName(), {validator: {$expr: {$gt: ["$x", {$subtract: [sum, 100000]}]}}}));
const judged = db.runCommand({
    insert: checked.getName(),
    documents: [{_id: 1, x: 1}, {_id: 2, x: 0}, {_id: 3, x: 3}],
    ordered: false,
});
assert.eq([[1, ErrorCodes.DocumentValidationFailure, 2]],
          judged.writeErrors.map(e => [e.index, e.code, e.errInfo.failingDocumentId]));
assert.eq([1, 3], checked.find().sort({_id: 1}).toArray().map(d => d._id));
assert.commandFailedWithCode(checked.update({_id: 1}, {$inc: {x: -1}}), ErrorCodes.DocumentValidationFailure);
assert.commandWorked(checked.update({_id: 1}, {$inc: {x: 1}}));
assert.eq(2, checked.findOne({_id: 1}).x);
