/**
 * Applications read documents in the order they wrote them, so updates change a value in its place.
 * Fails when an update moves a field that was there, or puts a new one anywhere but at the end.
 *
 */
const coll = db.update_keeps_field_order;

function names(before, update) {
    coll.drop();
    assert.commandWorked(coll.insert(before));
    assert.commandWorked(coll.update({}, update));
    return Object.keys(coll.findOne());
}
const doc = {_id: 1, c: 1, a: 2, b: {z: 1, y: 2}};

assert.eq(["_id", "c", "a", "b"], names(doc, {$set: {a: "longer than before", c: 5}}));
assert.eq(["_id", "c", "a", "b", "n"], names(doc, {$set: {n: 1, a: 0}}));
assert.eq(["_id", "c", "b", "d"], names(doc, {$rename: {a: "d"}}));
assert.eq(["_id", "a", "b"], names(doc, {$unset: {c: 1}}));
assert.eq(["_id", "c", "a", "b", "m", "n"], names(doc, {$inc: {n: 1, m: 1}}));
assert.eq(["_id", "c", "a", "b"], names(doc, [{$set: {c: 9}}]));
assert.eq(["_id", "c", "a", "b", "x"], names(doc, [{$set: {x: 1, a: 1}}]));
assert.eq(["_id", "b", "a"], names(doc, {b: 1, a: 1}));

coll.drop();
assert.commandWorked(coll.insert(doc));
assert.commandWorked(coll.update({}, {$set: {"b.y": 0, "b.x": 1}}));
assert.eq(["z", "y", "x"], Object.keys(coll.findOne().b));

// Fields that look like numbers are created in numeric order.
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));
assert.commandWorked(coll.update({_id: 1}, {$set: {"o.10": 1, "o.9": 1, "o.a": 1}}));
const bytes = tojson(coll.findOne().o);
assert.lt(bytes.indexOf('"9"'), bytes.indexOf('"10"'), bytes);
