/**
 * $slice takes a part of an array without saying what becomes of the other fields.
 * Fails when a negative count, a skip beyond the ends or a missing array gives something else, or $slice alone hides other fields.
 */
const coll = db.projection_slice;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: [1, 2, 3, 4, 5], b: "b", c: [{d: [1, 2]}, {d: [3, 4]}]}));

function sliced(spec) {
    return coll.findOne({}, {a: {$slice: spec}}).a;
}
assert.eq([1, 2], sliced(2));
assert.eq([4, 5], sliced(-2));
assert.eq([], sliced(0));
assert.eq([1, 2, 3, 4, 5], sliced(50));
assert.eq([1, 2, 3, 4, 5], sliced(-50));
assert.eq([2, 3], sliced([1, 2]));
assert.eq([4], sliced([-2, 1]));
assert.eq([1, 2], sliced([-50, 2]));
assert.eq([], sliced([50, 2]));
assert.eq([3, 4], sliced([NumberLong(2), 2.9]));

// Alone it keeps everything; with an inclusion it is part of it; with an exclusion too.
assert.eq({_id: 1, a: [1], b: "b", c: [{d: [1, 2]}, {d: [3, 4]}]}, coll.findOne({}, {a: {$slice: 1}}));
assert.eq({_id: 1, a: [1], b: "b"}, coll.findOne({}, {b: 1, a: {$slice: 1}}));
assert.eq({_id: 1, a: [1], c: [{d: [1, 2]}, {d: [3, 4]}]}, coll.findOne({}, {b: 0, a: {$slice: 1}}));
assert.eq({_id: 1, c: [{d: [2]}, {d: [4]}]}, coll.findOne({}, {a: 0, b: 0, "c.d": {$slice: -1}}));
assert.eq("b", coll.findOne({}, {b: {$slice: 1}}).b);
assert.eq(["_id", "a", "b", "c"], Object.keys(coll.findOne({}, {nothing: {$slice: 1}})));

for (const spec of ["1", [1], [1, 0], [1, -1], [1, 2, 3, 4], {x: 1}, [1, "2"]]) {
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), projection: {a: {$slice: spec}}}),
                                 [28667, 28724, 28725, 28726, 28727, 28728, 28729, 31273],
                                 () => tojson(spec));
}
// What is no number is the expression's, which is null when an argument is.
assert.eq({_id: 1, a: null}, coll.findOne({}, {_id: 1, a: {$slice: [0, null]}}));
