/**
 * $mod selects by remainder, over all numeric types and with the sign of the dividend.
 * Fails when a fraction, a negative number or a long is divided differently, or a malformed operand is taken.
 */
const coll = db.find_mod;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: 4},
    {_id: 1, a: 5.9},
    {_id: 2, a: -4},
    {_id: 3, a: NumberLong("9007199254740993")},
    {_id: 4, a: NumberDecimal("8.5")},
    {_id: 5, a: "4"},
    {_id: 6, a: [1, 4]},
    {_id: 7, a: NaN},
    {_id: 8, a: Infinity},
    {_id: 9},
    {_id: 10, a: -5},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 2, 4, 6], ids({a: {$mod: [4, 0]}}));
assert.eq([1, 3, 6], ids({a: {$mod: [4, 1]}}));
assert.eq([10], ids({a: {$mod: [4, -1]}}));
// Divisor and remainder are truncated to whole numbers.
assert.eq([0, 2, 4, 6], ids({a: {$mod: [4.9, 0.9]}}));
assert.eq([3], ids({a: {$mod: [NumberLong("9007199254740994"), NumberLong("9007199254740993")]}}));

function refused(operand) {
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {a: {$mod: operand}}}), ErrorCodes.BadValue, () => tojson(operand));
}
refused([]);
refused([4]);
refused([4, 0, 1]);
refused([0, 0]);
refused(["4", 0]);
refused(4);
refused([NaN, 0]);
refused([Infinity, 0]);
refused([1e300, 0]);
