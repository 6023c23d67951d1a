/**
 * $set and $unset are the most common of all updates.
 * Fails when a path is created, replaced or removed differently, or nModified counts an update that changed nothing.
 */
const coll = db.update_set_and_unset;

function updated(before, update) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    const result = assert.commandWorked(coll.update({_id: 1}, update));
    assert.eq(1, result.nMatched);
    return [coll.findOne(), result.nModified];
}

assert.eq([{_id: 1, a: 2}, 1], updated({a: 1}, {$set: {a: 2}}));
assert.eq([{_id: 1, a: 1}, 0], updated({a: 1}, {$set: {a: 1}}));
assert.eq([{_id: 1, a: 1, b: {c: {d: 1}}}, 1], updated({a: 1}, {$set: {"b.c.d": 1}}));
assert.eq([{_id: 1, b: {c: 1, e: 2}}, 1], updated({b: {c: 1}}, {$set: {"b.e": 2}}));
assert.eq([{_id: 1, a: [1, 9, 3]}, 1], updated({a: [1, 2, 3]}, {$set: {"a.1": 9}}));
assert.eq([{_id: 1, a: [1, null, null, 4]}, 1], updated({a: [1]}, {$set: {"a.3": 4}}));
assert.eq([{_id: 1, a: {"0": 5}}, 1], updated({}, {$set: {"a.0": 5}}));
assert.eq([{_id: 1, a: [{b: 2}]}, 1], updated({a: [{b: 1}]}, {$set: {"a.0.b": 2}}));

// Another number type with the same value is a change.
assert.eq(1, updated({a: NumberInt(1)}, {$set: {a: NumberLong(1)}})[1]);

assert.eq([{_id: 1, b: 2}, 1], updated({a: 1, b: 2}, {$unset: {a: ""}}));
assert.eq([{_id: 1, a: 1}, 0], updated({a: 1}, {$unset: {"b.c": 1}}));
assert.eq([{_id: 1, b: {}}, 1], updated({b: {c: 1}}, {$unset: {"b.c": true}}));
assert.eq([{_id: 1, a: [1, null, 3]}, 1], updated({a: [1, 2, 3]}, {$unset: {"a.1": 1}}));
assert.eq([{_id: 1, a: [1]}, 0], updated({a: [1]}, {$unset: {"a.7": 1}}));

// New fields go to the end, in the order of their names; several at once see the document before.
assert.eq(["_id", "z", "a", "b", "c"], Object.keys(updated({z: 1}, {$set: {c: 1, a: 1, b: 1}})[0]));
assert.eq([{_id: 1, b: 1}, 1], updated({a: 1}, {$unset: {a: 1}, $set: {b: 1}}));

// A path cannot go through a scalar, null included.
assert.commandWorked(coll.update({_id: 1}, {$set: {s: 1, n: null, a: [1]}}));
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"s.x": 1}}), ErrorCodes.PathNotViable);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"n.x": 1}}), ErrorCodes.PathNotViable);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"a.x": 1}}), ErrorCodes.PathNotViable);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: 1}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"": 1}}), ErrorCodes.EmptyFieldName);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"a..b": 1}}), ErrorCodes.EmptyFieldName);
assert.commandWorked(coll.update({_id: 1}, {$set: {}}));
