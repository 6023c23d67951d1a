/**
 * A capped collection keeps the newest documents, in the order they came.
 * Fails when an old document outlives its limit or the order changes.
 *
 * @tags: [
 *   # Capped collections cannot be sharded.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.capped_collections;
coll.drop();
assert.commandWorked(db.createCollection(coll.getName(), {capped: true, size: 100000, max: 5}));
assert(coll.isCapped());
const options = db.getCollectionInfos({name: coll.getName()})[0].options;
assert.eq(true, options.capped);
assert.eq(5, options.max);
// The size is kept as a multiple of 256 at least.
assert.lte(100000, options.size);

for (const id of [5, 3, 9, 1, 7]) {
    assert.commandWorked(coll.insert({_id: id}));
}
function ids(cursor) {
    return cursor.toArray().map(doc => doc._id);
}
assert.eq([5, 3, 9, 1, 7], ids(coll.find()));
assert.commandWorked(coll.insert({_id: 2}));
assert.eq([3, 9, 1, 7, 2], ids(coll.find()));
assert.eq([2, 7, 1, 9, 3], ids(coll.find().sort({$natural: -1})));
assert.commandWorked(coll.insert([{_id: 11}, {_id: 12}, {_id: 13}]));
assert.eq([7, 2, 11, 12, 13], ids(coll.find()));
assert.eq(5, coll.count());
assert.eq(null, coll.findOne({_id: 3}));

// By bytes as well.
const small = db.capped_collections_small;
small.drop();
assert.commandWorked(db.createCollection(small.getName(), {capped: true, size: 4096}));
for (let i = 0; i < 100; i++) {
    assert.commandWorked(small.insert({_id: i, padding: "x".repeat(200)}));
}
const kept = ids(small.find());
assert.gt(20, kept.length);
assert.lt(10, kept.length);
assert.eq(99, kept[kept.length - 1]);
assert.eq(kept.slice().sort((a, b) => a - b), kept);
