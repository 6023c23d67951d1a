/**
 * The four numeric types are one line of numbers: equal values are equal, and none is rounded to be compared.
 * Fails when a comparison or a key goes through another type and loses digits.
 */
const coll = db.numbers_of_different_types;
coll.drop();
const big = "9007199254740993";  // 2^53 + 1, which no double has
assert.commandWorked(coll.insert([
    {_id: "int", v: NumberInt(1)},
    {_id: "long", v: NumberLong(1)},
    {_id: "double", v: 1.0},
    {_id: "decimal", v: NumberDecimal("1.000")},
    {_id: "bigLong", v: NumberLong(big)},
    {_id: "bigDouble", v: 9007199254740992},
    {_id: "bigDecimal", v: NumberDecimal(big)},
    {_id: "tenth", v: 0.1},
    {_id: "decimalTenth", v: NumberDecimal("0.1")},
    {_id: "minusZero", v: -0.0},
    {_id: "zero", v: NumberInt(0)},
]));

function ids(filter, hint) {
    return coll.find(filter).hint(hint).toArray().map(doc => doc._id).sort();
}
assert.commandWorked(coll.createIndex({v: 1}));
for (const hint of [{$natural: 1}, {v: 1}]) {
    for (const one of [NumberInt(1), NumberLong(1), 1, NumberDecimal("1")]) {
        assert.eq(["decimal", "double", "int", "long"], ids({v: one}, hint), () => tojson(one));
    }
    assert.eq(["bigDecimal", "bigLong"], ids({v: NumberLong(big)}, hint));
    assert.eq(["bigDouble"], ids({v: 9007199254740992}, hint));
    assert.eq(["bigDecimal", "bigLong"], ids({v: {$gt: 9007199254740992}}, hint));
    // A double tenth is a little more than a decimal one.
    assert.eq(["tenth"], ids({v: 0.1}, hint));
    assert.eq(["decimalTenth"], ids({v: NumberDecimal("0.1")}, hint));
    assert.eq(["tenth"], ids({v: {$gt: NumberDecimal("0.1"), $lt: NumberDecimal("0.11")}}, hint));
    assert.eq(["minusZero", "zero"], ids({v: 0}, hint));
    assert.eq(["minusZero", "zero"], ids({v: -0.0}, hint));
}

// Types survive storage.
const types = coll.aggregate([{$sort: {_id: 1}}, {$project: {t: {$type: "$v"}}}]).toArray();
assert.eq({bigDecimal: "decimal", bigDouble: "double", bigLong: "long", decimal: "decimal", decimalTenth: "decimal", double: "double",
           int: "int", long: "long", minusZero: "double", tenth: "double", zero: "int"},
          Object.fromEntries(types.map(doc => [doc._id, doc.t])));
assert.eq('NumberDecimal("1.000")', tojson(coll.findOne({_id: "decimal"}).v));
assert.eq('NumberLong("' + big + '")', tojson(coll.findOne({_id: "bigLong"}).v));
