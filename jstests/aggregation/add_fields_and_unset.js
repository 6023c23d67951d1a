/**
 * $addFields, its other name $set, and $unset change some fields and leave the rest.
 * Fails when a field that was not named changes, moves or vanishes, or a field computed in the same stage is already seen.
 */
const coll = db.add_fields_and_unset;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: {c: 2}, l: [{x: 1}, {x: 2}]}));

function run(...pipeline) {
    return coll.aggregate(pipeline).toArray()[0];
}
for (const stage of ["$addFields", "$set"]) {
    assert.eq({_id: 1, a: 1, b: {c: 2}, l: [{x: 1}, {x: 2}], n: 2}, run({[stage]: {n: {$add: ["$a", 1]}}}));
    assert.eq({_id: 1, a: 5, b: {c: 2}, l: [{x: 1}, {x: 2}]}, run({[stage]: {a: 5}}));
    assert.eq({_id: 1, a: 1, b: {c: 2, d: 1}, l: [{x: 1}, {x: 2}]}, run({[stage]: {"b.d": "$a"}}));
    assert.eq({_id: 1, a: 1, b: {c: 2, d: 1}, l: [{x: 1}, {x: 2}]}, run({[stage]: {b: {d: "$a"}}}));
    assert.eq([{x: 1, y: 1}, {x: 2, y: 1}], run({[stage]: {"l.y": "$a"}}).l);
    assert.eq({_id: 1, b: {c: 2}, l: [{x: 1}, {x: 2}]}, run({[stage]: {a: "$$REMOVE"}}));
    assert.eq({_id: 1, a: {n: 7}, b: {c: 2}, l: [{x: 1}, {x: 2}]}, run({[stage]: {"a.n": 7}}));
    assert.eq({p: 1, q: 1}, run({[stage]: {p: 1}}, {[stage]: {q: "$p"}}, {$project: {_id: 0, p: 1, q: 1}}));
    // Both fields see the document as it came.
    assert.eq([5, 1], (doc => [doc.a, doc.was])(run({[stage]: {a: 5, was: "$a"}})));
    assert.eq(["_id", "a", "b", "l", "z", "y"], Object.keys(run({[stage]: {z: 1, a: 2, y: 3}})));
    // An expression that finds nothing leaves no field.
    assert(!run({[stage]: {n: "$none"}}).hasOwnProperty("n"));
}
assert.eq({_id: 1, b: {c: 2}, l: [{x: 1}, {x: 2}]}, run({$unset: "a"}));
assert.eq({_id: 1, b: {}, l: [{}, {}]}, run({$unset: ["a", "b.c", "l.x"]}));
assert.eq({a: 1, b: {c: 2}, l: [{x: 1}, {x: 2}]}, run({$unset: "_id"}));
assert.eq(1, run({$unset: "none"}).a);

function refused(codes, stage) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [stage], cursor: {}}), codes, () => tojson(stage));
}
refused(40272, {$addFields: 1});
refused(40272, {$set: "a"});
refused([31249, 40176], {$addFields: {a: 1, "a.b": 2}});
refused([31250, 40176], {$addFields: {"a.b": 2, a: 1}});
refused(31002, {$unset: 1});
refused(31119, {$unset: []});
// What is wrong with any of the names counts by its kind before by its place.
refused(31120, {$unset: ["a\0b", 1]});
refused(9527900, {$unset: ["$a", "a\0b"]});
refused(31120, {$unset: [1]});
refused([31249, 31250], {$unset: ["a", "a.b"]});
