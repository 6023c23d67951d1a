/**
 * $addToSet appends what is not there yet.
 * Fails when an equal value is added again, $each adds duplicates of its own, or documents with another field order count as equal.
 */
const coll = db.update_add_to_set;

function added(before, value) {
    coll.drop();
    assert.commandWorked(coll.insert(before === undefined ? {_id: 1} : {_id: 1, a: before}));
    const result = assert.commandWorked(coll.update({_id: 1}, {$addToSet: {a: value}}));
    return [coll.findOne().a, result.nModified];
}

assert.eq([[1], 1], added(undefined, 1));
assert.eq([[1, 2], 1], added([1], 2));
assert.eq([[1, 2], 0], added([1, 2], 2));
assert.eq([[1, 2], 0], added([1, 2], NumberLong(2)));
assert.eq([[1, "1"], 1], added([1], "1"));
assert.eq([[1, [2]], 1], added([1], [2]));
assert.eq([[1, 2, 3], 1], added([1], {$each: [2, 1, 3, 2]}));
assert.eq([[1], 0], added([1], {$each: []}));
assert.eq([[], 1], added(undefined, {$each: []}));
assert.eq([[{x: 1, y: 2}], 0], added([{x: 1, y: 2}], {x: 1, y: 2}));
assert.eq([[{x: 1, y: 2}, {y: 2, x: 1}], 1], added([{x: 1, y: 2}], {y: 2, x: 1}));
// What was there twice stays twice.
assert.eq([[1, 1, 2], 1], added([1, 1], 2));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, s: "x", a: [1]}));
assert.commandFailedWithCode(coll.update({_id: 1}, {$addToSet: {s: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$addToSet: {a: {$each: 1}}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$addToSet: {a: {$each: [1], $slice: 1}}}), ErrorCodes.BadValue);
assert.eq({_id: 1, s: "x", a: [1]}, coll.findOne());
