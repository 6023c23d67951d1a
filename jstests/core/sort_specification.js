/**
 * A sort is a document of paths with 1, -1 or a $meta, and anything else must be refused.
 * Fails when an invalid direction, path or too long a sort is taken, or skip and limit apply before the sort.
 */
const coll = db.sort_specification;
coll.drop();
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert({_id: i, v: (i * 7) % 20, parity: i % 2}));
}
const name = coll.getName();

function values(cursor) {
    return cursor.toArray().map(doc => doc.v);
}
assert.eq([0, 1, 2], values(coll.find().sort({v: 1}).limit(3)));
assert.eq([19, 18, 17], values(coll.find().sort({v: -1}).limit(3)));
assert.eq([5, 6], values(coll.find().sort({v: 1}).skip(5).limit(2)));
assert.eq([18, 19], values(coll.find().sort({v: 1}).skip(18)));
assert.eq([0, 2, 4], values(coll.find({v: {$mod: [2, 0]}}).sort({parity: 1, v: NumberLong(1)}).limit(3)));
assert.eq([19, 17, 15], values(coll.find().sort({parity: -1, v: -1.0}).limit(3)));
assert.eq(20, coll.find().sort({}).itcount());

function refused(codes, sort) {
    assert.commandFailedWithCode(db.runCommand({find: name, sort: sort}), codes, () => tojson(sort));
}
refused(15975, {v: 2});
refused(15975, {v: 0});
refused(15974, {v: "asc"});
refused(15974, {v: true});
refused([15974, 17312], {v: {up: 1}});
refused(31138, {v: {$meta: "indexKey"}});
refused(31138, {v: {$meta: 1}});
refused([16410, ErrorCodes.FailedToParse], {$v: 1});
refused([15998, 40352, 40353], {"v.": 1});
refused([40352, 40353], {"": 1});

// Thirty-two paths are a sort, thirty-three are not.
const paths = {};
for (let i = 0; i < 32; i++) {
    paths["p" + i] = 1;
}
assert.commandWorked(db.runCommand({find: name, sort: paths}));
paths.onemore = 1;
refused(13103, paths);
