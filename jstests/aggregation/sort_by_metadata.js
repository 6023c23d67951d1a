/**
 * A $sort by {$meta: "randVal"} draws lots, among documents that the keys before it leave equal; metadata that no stage gave is refused.
 * Fails when the drawn number shows, stands before the other keys, or is the same in each run, or when an order by nothing passes.
 */
const t = db.sort_by_metadata;
t.drop();
assert.commandWorked(t.insert([{_id: 1, v: 2}, {_id: 2, v: 1}, {_id: 3, v: 1}]));
const random = {$meta: "randVal"};
const ids = (...pipeline) => t.aggregate(pipeline).toArray().map((d) => d._id);
assert.eq([1, 2, 3], ids({$sort: {_id: 1, r: random}}));
assert.eq([1], ids({$sort: {v: -1, r: random}}, {$limit: 1}));
assert.eq([3, 2, 1], ids({$sort: {r: random}}, {$limit: 3}, {$sort: {_id: -1}}));
assert.eq(["_id", "v"], Object.keys(t.aggregate([{$sort: {r: random}}]).next()).sort());
const [firsts, seconds] = [new Set(), new Set()];
assert.soon(() => firsts.add(ids({$sort: {r: random}})[0]).size === 3);
assert.soon(() => seconds.add(ids({$sort: {v: -1, r: random}})[1]).size === 2);
for (const meta of ["geoNearDistance", "score", "textScore"]) {
    assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), pipeline: [{$sort: {x: {$meta: meta}}}], cursor: {}}), 40218);
}
