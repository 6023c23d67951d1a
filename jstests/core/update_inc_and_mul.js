/**
 * $inc and $mul keep the type of a number where they can and widen it where they must.
 * Fails when a result has another type, an int32 overflows without becoming a long, or a long overflows in silence.
 */
const coll = db.update_inc_and_mul;

function updated(value, update) {
    coll.drop();
    assert.commandWorked(coll.insert(value === undefined ? {_id: 1} : {_id: 1, v: value}));
    assert.commandWorked(coll.update({_id: 1}, update));
    const type = coll.aggregate([{$project: {t: {$type: "$v"}}}]).toArray()[0].t;
    return [type, coll.findOne().v];
}

assert.eq(["int", 8], updated(NumberInt(5), {$inc: {v: NumberInt(3)}}));
assert.eq(["double", 8], updated(NumberInt(5), {$inc: {v: 3}}));
assert.eq(["long", NumberLong(8)], updated(NumberInt(5), {$inc: {v: NumberLong(3)}}));
assert.eq(["long", NumberLong("2147483648")], updated(NumberInt(2147483647), {$inc: {v: NumberInt(1)}}));
assert.eq(["double", 4.5], updated(NumberLong(5), {$inc: {v: -0.5}}));
assert.eq(["decimal", NumberDecimal("5.10")], updated(NumberDecimal("5.00"), {$inc: {v: NumberDecimal("0.1")}}));
assert.eq(["int", 3], updated(undefined, {$inc: {v: NumberInt(3)}}));

assert.eq(["int", 15], updated(NumberInt(5), {$mul: {v: NumberInt(3)}}));
assert.eq(["long", NumberLong("4294967294")], updated(NumberInt(2147483647), {$mul: {v: NumberInt(2)}}));
assert.eq(["double", 7.5], updated(NumberInt(5), {$mul: {v: 1.5}}));
assert.eq(["int", 0], updated(undefined, {$mul: {v: NumberInt(3)}}));
assert.eq(["long", NumberLong(0)], updated(undefined, {$mul: {v: NumberLong(3)}}));

// What cannot be represented or is no number is refused, and nothing changes.
coll.drop();
assert.commandWorked(coll.insert({_id: 1, big: NumberLong("9223372036854775807"), s: "x", n: null, i: 1}));
const before = coll.findOne();
assert.commandFailedWithCode(coll.update({_id: 1}, {$inc: {big: NumberInt(1)}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$mul: {big: NumberInt(2)}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$inc: {s: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$inc: {n: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$mul: {s: 2}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$inc: {i: "1"}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$mul: {i: null}}), ErrorCodes.TypeMismatch);
assert.eq(before, coll.findOne());
