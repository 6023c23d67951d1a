/**
 * $rename moves a value to another name, replacing what was there.
 * Fails when the value changes or stays behind, or a rename through arrays, onto itself or to an invalid name is taken.
 */
const coll = db.update_rename;

function updated(before, update) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    const result = assert.commandWorked(coll.update({_id: 1}, update));
    return [coll.findOne(), result.nModified];
}

assert.eq([{_id: 1, b: 1}, 1], updated({a: 1}, {$rename: {a: "b"}}));
assert.eq([{_id: 1, b: 1}, 1], updated({a: 1, b: 2}, {$rename: {a: "b"}}));
assert.eq([{_id: 1, b: 2}, 0], updated({b: 2}, {$rename: {a: "b"}}));
assert.eq([{_id: 1, b: 2}, 0], updated({b: 2}, {$rename: {a: "_id"}}));
assert.eq([{_id: 1, a: {}, d: 3}, 1], updated({a: {b: 3}}, {$rename: {"a.b": "d"}}));
assert.eq([{_id: 1, x: {y: {z: 3}}}, 1], updated({a: 3}, {$rename: {a: "x.y.z"}}));
assert.eq(["_id", "keep", "b", "c"], Object.keys(updated({a: 1, keep: 0, d: 2}, {$rename: {a: "b", d: "c"}})[0]));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, list: [{x: 1}], o: {p: 1}}));
function refused(codes, rename) {
    assert.commandFailedWithCode(coll.update({_id: 1}, {$rename: rename}), codes, () => tojson(rename));
}
refused(ErrorCodes.BadValue, {a: "a"});
refused(ErrorCodes.BadValue, {a: 1});
refused(ErrorCodes.BadValue, {"list.0.x": "y"});
refused(ErrorCodes.BadValue, {a: "list.0.y"});
refused(ErrorCodes.BadValue, {"o": "o.p"});
refused(ErrorCodes.BadValue, {"o.p": "o"});
refused(ErrorCodes.EmptyFieldName, {a: ""});
refused(ErrorCodes.EmptyFieldName, {a: "b."});
refused([ErrorCodes.BadValue, 9867600], {a: "b\0c"});
refused(ErrorCodes.ImmutableField, {_id: "b"});
refused(ErrorCodes.ImmutableField, {a: "_id"});
refused(ErrorCodes.ConflictingUpdateOperators, {a: "b", c: "b"});
assert.eq({_id: 1, a: 1, list: [{x: 1}], o: {p: 1}}, coll.findOne());
