/**
 * Values of different types have one fixed order, which sorts, indexes and range scans share.
 * Fails when a type moves to another place in the order, equal numbers of different types are apart, or an index orders differently.
 */
const coll = db.sort_order_of_types;
coll.drop();
const ordered = [
    MinKey,
    null,
    NumberLong(-5),
    -1.5,
    0,
    NumberDecimal("0.5"),
    NumberInt(1),
    NumberLong("9007199254740993"),
    Infinity,
    "",
    "A",
    "a",
    "ab",
    {},
    {a: 1},
    {a: 1, b: 0},
    {a: 2},
    {b: 1},
    BinData(0, ""),
    BinData(0, "AAAA"),
    BinData(4, "AAAAAAAAAAAAAAAAAAAAAA=="),
    ObjectId("000000000000000000000000"),
    ObjectId("ffffffffffffffffffffffff"),
    false,
    true,
    new Date(-1),
    new Date(0),
    Timestamp(0, 1),
    Timestamp(1, 0),
    /a/,
    /b/,
    MaxKey,
];
// Inserted in another order than the one expected back.
const shuffled = ordered.map((value, i) => ({_id: i, v: value})).sort((x, y) => (x._id * 7 % 31) - (y._id * 7 % 31));
assert.commandWorked(coll.insert(shuffled));

const expected = [...ordered.keys()];
function ids(cursor) {
    return cursor.toArray().map(doc => doc._id);
}
assert.eq(expected, ids(coll.find().sort({v: 1})));
assert.eq(expected.slice().reverse(), ids(coll.find().sort({v: -1})));

assert.commandWorked(coll.createIndex({v: 1}));
assert.eq(expected, ids(coll.find().sort({v: 1}).hint({v: 1})));
assert.eq(expected.slice().reverse(), ids(coll.find().sort({v: -1}).hint({v: 1})));
assert.eq(expected, ids(coll.aggregate([{$sort: {v: 1}}])));

// A range stays within its type, a bound of MinKey or MaxKey goes over all.
assert.eq([9, 10, 11, 12], ids(coll.find({v: {$gte: ""}}).sort({v: 1})));
assert.eq(expected, ids(coll.find({v: {$gte: MinKey, $lte: MaxKey}}).sort({v: 1})));
