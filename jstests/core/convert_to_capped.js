/**
 * An ordinary collection can become a capped one, in place or as a copy.
 * Fails when documents beyond the size stay, the newest are lost, or the copy's source changes.
 *
 * @tags: [
 *   # Capped collections cannot be sharded.
 *   assumes_unsharded_collection,
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.convert_to_capped;
const copy = db.convert_to_capped_copy;
coll.drop();
copy.drop();
const padding = "x".repeat(1000);
for (let i = 0; i < 50; i++) {
    assert.commandWorked(coll.insert({_id: i, padding: padding}));
}

assert.commandWorked(db.runCommand({cloneCollectionAsCapped: coll.getName(), toCollection: copy.getName(), size: 10 * 1024}));
assert.eq(50, coll.find().itcount());
assert.eq(false, coll.isCapped());
assert.eq(true, copy.isCapped());
const copied = copy.find().toArray().map(doc => doc._id);
assert.lt(5, copied.length);
assert.lte(copied.length, 11);
assert.eq(49, copied[copied.length - 1]);

assert.commandWorked(db.runCommand({convertToCapped: coll.getName(), size: 20 * 1024}));
assert.eq(true, coll.isCapped());
const kept = coll.find().toArray().map(doc => doc._id);
assert.lt(15, kept.length);
assert.lte(kept.length, 21);
assert.eq([...Array(kept.length).keys()].map(i => 50 - kept.length + i), kept);
// It goes on as any capped collection.
for (let i = 50; i < 60; i++) {
    assert.commandWorked(coll.insert({_id: i, padding: padding}));
}
assert.lte(coll.find().itcount(), 21);
assert.eq(59, coll.find().sort({$natural: -1}).limit(1).next()._id);

// A capped collection may be emptied, for tests.
assert.commandWorked(db.runCommand({emptycapped: copy.getName()}));
assert.eq(0, copy.find().itcount());

assert.commandFailedWithCode(db.runCommand({convertToCapped: "convert_to_capped_none", size: 4096}), ErrorCodes.NamespaceNotFound);
assert.commandFailed(db.runCommand({convertToCapped: coll.getName()}));
assert.commandFailedWithCode(db.runCommand({cloneCollectionAsCapped: "convert_to_capped_none", toCollection: "y", size: 4096}),
                             ErrorCodes.NamespaceNotFound);
