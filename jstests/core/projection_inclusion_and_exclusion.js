/**
 * Projections name what to keep or what to leave out, and the two do not mix except for _id.
 * Fails when a projection keeps, drops or reorders another field, or the server takes a mixed one.
 */
const coll = db.projection_inclusion_and_exclusion;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: {c: 2, d: {e: 3, f: 4}}, g: [{h: 5, i: 6}, 7, {i: 8}, [{h: 9, i: 10}]]}));

function project(projection) {
    return coll.findOne({}, projection);
}

assert.eq({_id: 1, a: 1}, project({a: 1}));
assert.eq({a: 1}, project({_id: 0, a: 1}));
assert.eq({_id: 1}, project({_id: 1}));
assert.eq({_id: 1}, project({missing: 1}));
assert.eq({_id: 1, b: {c: 2}}, project({"b.c": 1}));
assert.eq({_id: 1, b: {d: {f: 4}}}, project({b: {d: {f: true}}}));
assert.eq({_id: 1, b: {c: 2, d: {f: 4}}}, project({"b.d.f": 1, "b.c": NumberLong(3)}));

// Through arrays: documents are projected, scalars vanish when including and stay when excluding.
assert.eq({_id: 1, g: [{h: 5}, {}, [{h: 9}]]}, project({"g.h": 1}));
assert.eq({_id: 1, a: 1, b: {c: 2, d: {e: 3, f: 4}}, g: [{i: 6}, 7, {i: 8}, [{i: 10}]]}, project({"g.h": 0}));

assert.eq({_id: 1, b: {c: 2, d: {e: 3, f: 4}}}, project({a: 0, g: 0}));
assert.eq({a: 1}, project({_id: 0, b: 0, g: 0}));
assert.eq({_id: 1, a: 1, b: {d: {e: 3}}}, project({g: 0, "b.c": 0, "b.d.f": 0}));
assert.eq(["_id", "a", "b", "g"], Object.keys(project({g: 1, b: 1, a: 1})));

const name = coll.getName();
function refused(code, projection) {
    assert.commandFailedWithCode(db.runCommand({find: name, projection: projection}), code, () => tojson(projection));
}
refused(31254, {a: 1, b: 0});
refused(31253, {a: 0, b: 1});
refused(31249, {b: 1, "b.c": 1});
refused(31250, {"b.c": 1, b: 1});
refused([31249, 31250], {"b.d.e": 1, b: {d: 1}});
refused([51270, 31308], {b: {}});
refused([40353, 15998, 31395], {"b..c": 1});
refused([40353, 15998, 31395, 40352], {"": 1});
refused([ErrorCodes.FieldPathInvalid, 16410, 31325], {$a: 1});
