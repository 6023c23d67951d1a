/**
 * A collection has at most sixty-four indexes, and an index at most thirty-two fields.
 * Fails when one more is made, or the refused one leaves a trace.
 */
const coll = db.index_limits;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

let number = 0;
for (let have = coll.getIndexes().length; have < 64; have++) {
    assert.commandWorked(coll.createIndex({["f" + number++]: 1}));
}
assert.eq(64, coll.getIndexes().length);
assert.commandFailedWithCode(coll.createIndex({more: 1}), ErrorCodes.CannotCreateIndex);
assert.eq(64, coll.getIndexes().length);
// One that is there already may be asked for again.
assert.commandWorked(coll.createIndex({f0: 1}));
assert.commandWorked(coll.dropIndex({f0: 1}));

const key = {};
for (let i = 0; i < 32; i++) {
    key["k" + i] = i % 2 == 0 ? 1 : -1;
}
assert.commandWorked(coll.createIndex(key, {name: "widest"}));
assert.commandWorked(coll.dropIndex("widest"));
key.onemore = 1;
assert.commandFailedWithCode(coll.createIndex(key, {name: "tooWide"}), [13103, ErrorCodes.CannotCreateIndex]);

// Keys of any length are indexed since 4.2.
const long = "x".repeat(5000);
assert.commandWorked(coll.createIndex({s: 1}));
assert.commandWorked(coll.insert([{_id: 2, s: long + "a"}, {_id: 3, s: long + "b"}]));
assert.eq([3], coll.find({s: long + "b"}).hint({s: 1}).toArray().map(doc => doc._id));
assert.eq([2, 3], coll.find({s: {$gte: long}}).sort({s: 1}).hint({s: 1}).toArray().map(doc => doc._id));
