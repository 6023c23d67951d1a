/**
 * $bit does integer arithmetic on bits, for flags kept in numbers.
 * Fails when and, or, xor give another result or type, or a double is taken for an integer.
 */
const coll = db.update_bit;

function updated(value, operation) {
    coll.drop();
    assert.commandWorked(coll.insert(value === undefined ? {_id: 1} : {_id: 1, v: value}));
    assert.commandWorked(coll.update({_id: 1}, {$bit: {v: operation}}));
    return [coll.findOne().v, coll.find({v: {$type: "int"}}).itcount() == 1];
}

assert.eq([8, true], updated(NumberInt(12), {and: NumberInt(10)}));
assert.eq([14, true], updated(NumberInt(12), {or: NumberInt(10)}));
assert.eq([6, true], updated(NumberInt(12), {xor: NumberInt(10)}));
assert.eq([NumberLong(14), false], updated(NumberLong(12), {or: NumberInt(10)}));
assert.eq([NumberLong(14), false], updated(NumberInt(12), {or: NumberLong(10)}));
assert.eq([NumberLong("4294967297"), false], updated(NumberInt(1), {or: NumberLong("4294967296")}));
assert.eq([-9, true], updated(NumberInt(-1), {xor: NumberInt(8)}));
// Several operations on one field run from left to right.
assert.eq([9, true], updated(NumberInt(12), {and: NumberInt(8), or: NumberInt(1)}));
// A missing field counts as zero.
assert.eq([5, true], updated(undefined, {or: NumberInt(5)}));
assert.eq([0, true], updated(undefined, {and: NumberInt(5)}));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, i: NumberInt(1), d: 1.5, s: "x"}));
function refused(bit) {
    assert.commandFailedWithCode(coll.update({_id: 1}, {$bit: bit}), ErrorCodes.BadValue, () => tojson(bit));
}
refused({i: {or: 1.5}});
refused({i: {or: 1}});
refused({i: {or: "1"}});
refused({i: {nand: NumberInt(1)}});
refused({i: NumberInt(1)});
refused({i: {}});
refused({d: {or: NumberInt(1)}});
refused({s: {or: NumberInt(1)}});
