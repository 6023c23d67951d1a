/**
 * The keys of one document in one index may be far larger than the document, since an array has a key for each element and each repeats the
 * other fields. Such a document, or an index that would have it, is refused before its keys use up the memory.
 * Fails if the keys are made whatever they come to: the first insert needs hundreds of gigabytes and ends the process.
 *
 * A shard key among the indexes would change what is refused.
 * @tags: [assumes_unsharded_collection]
 */
const coll = db.index_keys_of_a_document;
coll.drop();
const large = {_id: 1, a: "a".repeat(4 << 20), x: [...Array(100000).keys()]};
assert.commandWorked(coll.createIndex({a: 1, x: 1}));
assert.commandFailedWithCode(coll.insert(large), ErrorCodes.CannotBuildIndexKeys);
assert.eq(0, coll.find().itcount());
assert.commandWorked(coll.insert({_id: 1, a: "a", x: large.x}));
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {a: large.a}}), ErrorCodes.CannotBuildIndexKeys);
assert.eq("a", coll.findOne().a);

// A document that is there refuses the index instead, and is left alone.
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.update({_id: 1}, {$set: {a: large.a}}));
assert.commandFailedWithCode(coll.createIndex({a: 1, x: 1}), ErrorCodes.CannotBuildIndexKeys);
assert.eq(["_id_"], coll.getIndexes().map((index) => index.name));
assert.commandWorked(coll.createIndex({x: 1}));
assert.eq(1, coll.find({x: 99999}).hint({x: 1}).itcount());
assert.commandWorked(coll.remove({_id: 1}));

// A wildcard's keys repeat the path.
assert.commandWorked(coll.createIndex({"$**": 1}));
const wide = Object.fromEntries([...Array(50000).keys()].map((i) => ["f" + i, i]));
assert.commandFailedWithCode(coll.insert({_id: 1, ["n".repeat(1 << 20)]: wide}), ErrorCodes.CannotBuildIndexKeys);
assert.commandWorked(coll.insert({_id: 1, n: wide}));
assert.eq(1, coll.find({"n.f49999": 49999}).hint({"$**": 1}).itcount());
coll.drop();
