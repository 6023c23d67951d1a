/**
 * collStats, dbStats and dataSize are how operators see what takes space.
 * Fails when counts or sizes are not those of the documents, or a scale is not applied.
 */
const mine = db.getSiblingDB("collection_statistics");
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
const doc = {_id: 0, padding: "x".repeat(1000)};
const size = Object.bsonsize(doc);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert(Object.assign({}, doc, {_id: i})));
}
assert.commandWorked(coll.createIndex({padding: 1}));
assert.commandWorked(mine.other.insert({_id: 1}));

const stats = assert.commandWorked(mine.runCommand({collStats: "c"}));
assert.eq("collection_statistics.c", stats.ns);
assert.eq(20, stats.count);
assert.eq(20 * size, stats.size);
assert.eq(size, stats.avgObjSize);
assert.lte(2, stats.nindexes);
assert(stats.indexSizes.hasOwnProperty("padding_1") && stats.indexSizes.hasOwnProperty("_id_"), tojson(stats.indexSizes));
assert.eq(stats.nindexes, Object.keys(stats.indexSizes).length);
assert.eq(false, !!stats.capped);
assert.eq(1, stats.scaleFactor);

const scaled = assert.commandWorked(mine.runCommand({collStats: "c", scale: 1024}));
assert.eq(1024, scaled.scaleFactor);
assert.lte(Math.abs(20 * size / 1024 - scaled.size), 4);
assert.eq(0, assert.commandWorked(mine.runCommand({collStats: "none"})).count);

const database = assert.commandWorked(mine.runCommand({dbStats: 1}));
assert.eq("collection_statistics", database.db);
assert.eq(21, database.objects);
assert.lte(2, database.collections);
assert.lte(3, database.indexes);
assert.eq(20 * size + Object.bsonsize({_id: 1}), database.dataSize);
// A router shows them for each shard.
for (const shown of database.raw ? Object.values(database.raw) : [database]) {
    assert.lt(0, shown.fsUsedSize);
    assert.lt(shown.fsUsedSize, shown.fsTotalSize);
}

assert.eq(20, coll.stats().count);
assert.eq(20, coll.aggregate([{$collStats: {count: {}}}]).toArray().reduce((sum, shard) => sum + shard.count, 0));
assert.commandFailedWithCode(mine.runCommand({collStats: "c", scale: 0}), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(mine.runCommand({collStats: "c", scale: "k"}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(mine.runCommand({collStats: ""}), ErrorCodes.InvalidNamespace);
assert.commandWorked(mine.dropDatabase());
