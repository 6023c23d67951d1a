/**
 * A missing index shows in how often a collection is scanned.
 * Fails when a scan is not counted, an indexed read counts as one, or counts outlive the collection or index they are of.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
const coll = db.collection_scans_counted;
coll.drop();
const create = () => {
    assert.commandWorked(coll.insert([{_id: 0, a: 0}, {_id: 1, a: 1}]));
    assert.commandWorked(coll.createIndex({a: 1}));
};
create();
const scans = on => {
    const stats = on.aggregate([{$collStats: {queryExecStats: {}}}]).toArray()[0].queryExecStats.collectionScans;
    return [Number(stats.total), Number(stats.nonTailable)];
};
const uses = () => Number(coll.aggregate([{$indexStats: {}}, {$match: {name: "a_1"}}]).toArray()[0].accesses.ops);
const before = scans(coll);
const server = () => assert.commandWorked(db.serverStatus()).metrics.queryExecutor.collectionScans;
const serverBefore = Number(server().total);

assert.eq(2, coll.find().itcount());
assert.eq(1, coll.count({b: {$exists: false}, a: {$mod: [2, 1]}, _id: {$gte: 0}}));
assert.eq(1, coll.find({a: 1}).itcount());
assert.eq(2, coll.aggregate([{$group: {_id: "$b", n: {$sum: 1}}}]).toArray()[0].n);
assert.commandWorked(coll.update({b: 1}, {$set: {c: 1}}));
const after = scans(coll);
assert.eq([3, 3], [after[0] - before[0], after[1] - before[1]], "find, aggregate and update scanned");
assert.lte(3, Number(server().total) - serverBefore);
assert.lte(1, uses());

assert.commandWorked(coll.dropIndex({a: 1}));
assert.commandWorked(coll.createIndex({a: 1}));
assert.eq(0, uses(), "the index is another");
assert.eq(1, coll.find({a: 1}).itcount());
assert.eq(1, uses());

// The counts go with the collection, whatever its name is.
const renamed = db.collection_scans_counted_renamed;
renamed.drop();
assert.commandWorked(coll.renameCollection(renamed.getName()));
assert.eq(after, scans(renamed));
create();
assert.eq([[0, 0], 0], [scans(coll), uses()], "another collection has the name");
assert.eq(2, coll.find().itcount());
coll.drop();
create();
assert.eq([[0, 0], 0], [scans(coll), uses()]);

const capped = db.collection_scans_counted_capped;
capped.drop();
assert.commandWorked(db.createCollection(capped.getName(), {capped: true, size: 4096}));
assert.commandWorked(capped.insert({}));
assert.commandWorked(db.runCommand({find: capped.getName(), tailable: true, batchSize: 1}));
assert.eq([1, 0], scans(capped), "a tailable scan is counted apart");
