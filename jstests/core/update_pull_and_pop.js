/**
 * $pull, $pullAll and $pop take elements out of arrays.
 * Fails when they take out another element, match documents by whole where a query is meant, or touch a field that is no array.
 */
const coll = db.update_pull_and_pop;

function updated(before, update) {
    coll.drop();
    assert.commandWorked(coll.insert({_id: 1, a: before}));
    const result = assert.commandWorked(coll.update({_id: 1}, update));
    return [coll.findOne().a, result.nModified];
}

assert.eq([[1, 3], 1], updated([1, 2, 3, 2], {$pull: {a: 2}}));
assert.eq([[1, 2], 0], updated([1, 2], {$pull: {a: 5}}));
assert.eq([[1, 2], 1], updated([1, 2, 3, 4], {$pull: {a: {$gt: 2}}}));
assert.eq([["b"], 1], updated(["a", "b", "A"], {$pull: {a: /^a/i}}));
assert.eq([[2], 1], updated([1, 2, 3], {$pull: {a: {$in: [1, 3]}}}));
// Against documents it is a query over their fields.
assert.eq([[{k: 2}], 1], updated([{k: 1, v: 1}, {k: 2}], {$pull: {a: {k: 1}}}));
assert.eq([[{k: 1, v: 1}], 1], updated([{k: 1, v: 1}, {k: 9}], {$pull: {a: {k: {$gte: 5}}}}));
assert.eq([[[3]], 1], updated([[1, 2], [3]], {$pull: {a: [1, 2]}}));
assert.eq([[{r: [{q: 1}]}], 1], updated([{r: [{q: 5}]}, {r: [{q: 1}]}], {$pull: {a: {r: {$elemMatch: {q: 5}}}}}));

assert.eq([[3], 1], updated([1, 2, 3, 1], {$pullAll: {a: [1, 2]}}));
assert.eq([[{k: 1, v: 1}], 0], updated([{k: 1, v: 1}], {$pullAll: {a: [{k: 1}]}}));
assert.eq([[], 1], updated([{k: 1}], {$pullAll: {a: [{k: NumberLong(1)}]}}));

assert.eq([[1, 2], 1], updated([1, 2, 3], {$pop: {a: 1}}));
assert.eq([[2, 3], 1], updated([1, 2, 3], {$pop: {a: -1}}));
assert.eq([[], 0], updated([], {$pop: {a: 1}}));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, s: "x", a: [1]}));
assert.commandFailedWithCode(coll.update({_id: 1}, {$pull: {s: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$pullAll: {s: [1]}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$pullAll: {a: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 1}, {$pop: {s: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(coll.update({_id: 1}, {$pop: {a: 2}}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(coll.update({_id: 1}, {$pop: {a: "1"}}), ErrorCodes.FailedToParse);
// A missing array is nothing to take out of.
for (const update of [{$pull: {none: 1}}, {$pullAll: {none: [1]}}, {$pop: {none: 1}}]) {
    assert.eq(0, assert.commandWorked(coll.update({_id: 1}, update)).nModified);
}
assert.eq({_id: 1, s: "x", a: [1]}, coll.findOne());
