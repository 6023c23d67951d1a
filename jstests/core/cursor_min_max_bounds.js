/**
 * min() and max() give the bounds of an index scan by themselves.
 * Fails when the lower bound is left out, the upper one included, or bounds of another index are taken.
 *
 * @tags: [
 *   # With a hashed shard key there are more indexes than these.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.cursor_min_max_bounds;
coll.drop();
for (let a = 0; a < 5; a++) {
    for (let b = 0; b < 2; b++) {
        assert.commandWorked(coll.insert({_id: a * 2 + b, a: a, b: b}));
    }
}
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({a: 1, b: -1}));

function ids(cursor) {
    return cursor.toArray().map(doc => doc._id).sort((x, y) => x - y);
}
assert.eq([4, 5, 6, 7], ids(coll.find().min({a: 2}).max({a: 4}).hint({a: 1})));
assert.eq([6, 7, 8, 9], ids(coll.find().min({a: 3}).hint({a: 1})));
assert.eq([0, 1], ids(coll.find().max({a: 1}).hint({a: 1})));
assert.eq([6, 8], ids(coll.find({b: 0}).min({a: 3}).hint({a: 1})));
// Within one a the second field runs downwards, so b: 1 comes before b: 0.
assert.eq([2, 4, 5], ids(coll.find().min({a: 1, b: 0}).max({a: 3, b: 1}).hint({a: 1, b: -1})));

const name = coll.getName();
function refused(codes, options) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({find: name}, options)), codes, () => tojson(options));
}
refused(51173, {min: {a: 1}});
refused(51174, {min: {a: 1}, max: {b: 2}, hint: {a: 1}});
refused(51174, {min: {b: 1}, hint: {a: 1}});
refused(51175, {min: {a: 4}, max: {a: 2}, hint: {a: 1}});
refused(51175, {min: {a: 4}, max: {a: 4}, hint: {a: 1}});
