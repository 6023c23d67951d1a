/**
 * $project shapes documents: fields kept, left out, renamed and computed.
 * Fails when a computed field replaces more than it should, nested forms differ from dotted ones, or an empty $project is taken.
 */
const coll = db.project_stage;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: {c: 2, d: 3}, l: [{x: 1, y: 2}, {x: 3}, 4]}));

function project(spec) {
    return coll.aggregate([{$project: spec}]).toArray()[0];
}
assert.eq({_id: 1, a: 1}, project({a: 1}));
assert.eq({a: 1}, project({_id: 0, a: true}));
assert.eq({_id: 1, b: {c: 2}}, project({"b.c": 1}));
assert.eq({_id: 1, b: {c: 2}}, project({b: {c: 1}}));
assert.eq({_id: 1, a: 1, l: [{x: 1, y: 2}, {x: 3}, 4]}, project({b: 0}));
assert.eq({_id: 1, a: 1, b: {c: 2}, l: [{x: 1}, {x: 3}, 4]}, project({"b.d": 0, "l.y": 0}));
assert.eq({_id: 1, l: [{x: 1}, {x: 3}]}, project({"l.x": 1}));
assert.eq({_id: 1, n: 3}, project({n: {$add: ["$a", "$b.c"]}}));
assert.eq({_id: 1, n: {m: 2}}, project({"n.m": "$b.c"}));
assert.eq({_id: 1, n: {m: 2, o: 1}}, project({n: {m: "$b.c", o: "$a"}}));
assert.eq({_id: 1, l: [{z: 1}, {z: 1}, {z: 1}]}, project({"l.z": "$a"}));
assert.eq({_id: 1, xs: [1, 3]}, project({xs: "$l.x"}));
assert.eq({_id: 1, pair: [1, null]}, project({pair: ["$a", "$none"]}));
assert.eq({_id: "x"}, project({_id: {$literal: "x"}}));
assert.eq({_id: 1}, project({gone: "$none"}));
assert.eq({_id: 1, a: 1}, project({a: 1, b: "$$REMOVE"}));
assert.eq({_id: 1, doc: {_id: 1, a: 1, b: {c: 2, d: 3}, l: [{x: 1, y: 2}, {x: 3}, 4]}}, project({doc: "$$ROOT"}));
// Kept fields stand in the document's order, computed ones after them in the order of the projection.
assert.eq(["_id", "a", "b", "z", "y"], Object.keys(project({z: "$a", b: 1, y: "$a", a: 1})));

function refused(codes, spec) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$project: spec}], cursor: {}}), codes, () => tojson(spec));
}
refused([51272, 40177], {});
refused([15969, 40272], 1);
refused(31254, {a: 1, b: 0});
refused(31253, {a: 0, b: 1});
refused([31252, 31310, 40179], {a: 0, b: "$a"});
refused(31249, {b: 1, "b.c": 1});
refused(31324, {"l.$": 1});
refused(31250, {"b.c": 1, b: 1});
refused(31325, {a: {$unheardOf: 1}});
refused([16410, ErrorCodes.FieldPathInvalid], {"a.$b": 1});
refused([40352, 40353], {"": 1});
refused([40353], {"a.": 1});
refused(16872, {a: "$"});
