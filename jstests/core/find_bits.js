/**
 * The bit query operators test masks, positions and binary data alike.
 * Fails when a position, a negative number's sign bits or the bits of BinData are counted differently.
 */
const coll = db.find_bits;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: 0},
    {_id: 1, a: NumberInt(54)},  // 110110
    {_id: 2, a: NumberLong(20)},  // 010100
    {_id: 3, a: 20.0},
    {_id: 4, a: -1},
    {_id: 5, a: BinData(0, "ZA==")},  // the byte 0x64: 1100100
    {_id: 6, a: 1.5},
    {_id: 7, a: "54"},
    {_id: 8},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([1, 4], ids({a: {$bitsAllSet: [1, 5]}}));
assert.eq([1, 4], ids({a: {$bitsAllSet: 34}}));
assert.eq([2, 3], ids({a: {$bitsAllClear: [1, 5], $ne: 0}}));
assert.eq([0, 2, 3], ids({a: {$bitsAllClear: 35}}));
assert.eq([1, 2, 3, 4, 5], ids({a: {$bitsAnySet: [2, 4]}}));
assert.eq([0, 2, 3, 5], ids({a: {$bitsAnyClear: [1, 2]}}));
assert.eq([4], ids({a: {$bitsAllSet: [60, 63, 200]}}));
assert.eq([4, 5], ids({a: {$bitsAllSet: BinData(0, "ZA==")}}));
assert.eq([0, 1, 2, 3, 4, 5], ids({a: {$bitsAllSet: 0}}));

for (const operand of ["x", -1, 1.5, [-1], ["x"], [1.5], {}, null, NumberLong("-3")]) {
    for (const operator of ["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"]) {
        const reply = db.runCommand({find: coll.getName(), filter: {a: {[operator]: operand}}});
        assert.commandFailedWithCode(reply, [ErrorCodes.BadValue, ErrorCodes.FailedToParse], () => operator + " " + tojson(operand));
    }
}
