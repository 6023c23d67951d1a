/**
 * A time series sharded by its meta field is one collection to clients, wherever its buckets are: what is inserted, read, changed and
 * deleted through a router is what one node would have.
 * It fails if a measurement goes to a shard that does not own its bucket, a reading leaves out a shard or takes what a shard does not
 * own, a repeated insert is executed again where its bucket has moved, or a drop leaves something behind.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    collectionEntry,
    dropWithRemains,
    freshDatabase,
    heldBy,
    moveRange,
    shardConnection,
    shardNames,
    shardsInPlan
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "timeseries_sharded", first);
const series = {timeField: "t", metaField: "m"};
const start = 1700000000000;
const measurements = (n, from) =>
    Array.from({length: n}, (_, i) => ({_id: from + i, t: new Date(start + (from + i) * 1000), m: (from + i) % 10, v: from + i}));
const bucketsOf = (coll) => testDB.getCollection(`system.buckets.${coll.getName()}`);
const values = (cursor) => cursor.toArray().map((d) => d.v).sort((a, b) => a - b);
const upTo = (n) => Array.from({length: n}, (_, i) => i);
const inHalves = (coll) => {
    const buckets = bucketsOf(coll);
    assert.commandWorked(db.adminCommand({split: buckets.getFullName(), middle: {meta: 5}}));
    moveRange(buckets, {min: {meta: 5}, max: {meta: MaxKey}}, second);
    return buckets;
};

// Not there yet, empty, and with measurements.
const options = Object.assign({granularity: "minutes"}, series);
assert.commandWorked(db.adminCommand({shardCollection: `${testDB}.made`, key: {m: 1}, timeseries: options}));
assert.commandWorked(testDB.createCollection("empty", {timeseries: series}));
assert.commandWorked(db.adminCommand({shardCollection: `${testDB}.empty`, key: {"m.a": 1}}));
assert.commandWorked(testDB.createCollection("c", {timeseries: series}));
const c = testDB.c;
assert.commandWorked(c.insert(measurements(500, 0)));
assert.commandWorked(db.adminCommand({shardCollection: `${testDB}.c`, key: {m: 1}}));
assert.commandWorked(db.adminCommand({shardCollection: `${testDB}.c`, key: {m: 1}, timeseries: series}));

const entry = collectionEntry(bucketsOf(testDB.made));
assert.eq({meta: 1}, entry.key);
assert.eq("minutes", entry.timeseriesFields.granularity);
assert.eq({"meta.a": 1}, collectionEntry(bucketsOf(testDB.empty)).key);
assert.eq(null, collectionEntry(c));
assert.eq([["c", "timeseries"], ["empty", "timeseries"], ["made", "timeseries"]],
          testDB.getCollectionInfos({type: "timeseries"}).map((info) => [info.name, info.type]).sort());

// Halves of the buckets on two shards.
const buckets = inHalves(c);
assert.eq([first, second], chunksOf(buckets).map((chunk) => chunk.shard));
assert.gt(heldBy(buckets, first), 0);
assert.gt(heldBy(buckets, second), 0);
assert.eq(upTo(500), values(c.find()));
assert.commandWorked(c.insert(measurements(500, 500)));
assert.commandWorked(testDB.runCommand({insert: "c", documents: measurements(100, 1000), ordered: false}));
assert.eq(upTo(1100), values(c.find()));
const held = [first, second].map((shard) => heldBy(buckets, shard));
assert.eq(held[0] + held[1], buckets.find().itcount());

// Readings: of one shard by the meta field, of both, and as pipelines.
assert.eq(110, c.find({m: 7}).itcount());
assert.eq([second], shardsInPlan(buckets.find({meta: 7}).explain()));
assert.eq(30, c.find({t: {$gte: new Date(start + 1070 * 1000)}}).itcount());
assert.eq([{_id: 3, n: 110}], c.aggregate([{$match: {m: 3}}, {$group: {_id: "$m", n: {$sum: 1}}}]).toArray());
assert.eq(upTo(10), c.aggregate([{$group: {_id: "$m"}}, {$sort: {_id: 1}}]).toArray().map((d) => d._id));
assert.eq([1099, 1098, 1097], c.find().sort({t: -1}).limit(3).toArray().map((d) => d.v));
assert.eq(1100, c.countDocuments({}));
assert.eq(10, c.distinct("m").length);
assert.commandWorked(testDB.names.insert(upTo(10).map((m) => ({_id: m}))));
const joined = testDB.names.aggregate([{$lookup: {from: "c", localField: "_id", foreignField: "m", as: "all"}}]).toArray();
assert.eq(upTo(10).map(() => 110), joined.map((d) => d.all.length));

// A measurement is refused or taken by itself.
const mixed = [{t: new Date(start), m: 1, v: -1}, {m: 7, v: -2}, {t: new Date(start), m: 8, v: -3}, {t: new Date(start), m: [1], v: -4}];
const unordered = testDB.runCommand({insert: "c", documents: mixed, ordered: false});
assert.eq([2, [1, 3]], [unordered.n, unordered.writeErrors.map((e) => e.index)]);
assert.eq(2, unordered.writeErrors[0].code);
const ordered = testDB.runCommand({insert: "c", documents: mixed, ordered: true});
assert.eq([1, [1]], [ordered.n, ordered.writeErrors.map((e) => e.index)]);
assert.eq(3, assert.commandWorked(testDB.runCommand({delete: "c", deletes: [{q: {v: {$lt: 0}}, limit: 0}]})).n);
assert.eq(upTo(1100), values(c.find()));

// A repeated insert is recognised, also where its buckets have moved since.
const lsid = {id: UUID()};
const insert = {insert: "c", documents: measurements(20, 1100), lsid: lsid, txnNumber: NumberLong(1)};
assert.eq(20, assert.commandWorked(testDB.runCommand(insert)).n);
assert.eq(20, assert.commandWorked(testDB.runCommand(insert)).n);
moveRange(buckets, {min: {meta: 5}, max: {meta: MaxKey}}, first);
moveRange(buckets, {min: {meta: MinKey}, max: {meta: 5}}, second);
const again = assert.commandWorked(testDB.runCommand(insert));
assert.eq([20, 20], [again.n, again.retriedStmtIds.length]);
assert.eq(upTo(1120), values(c.find()));

// Deletes and updates, over both shards and on one.
assert.eq(2, assert.commandWorked(testDB.runCommand({delete: "c", deletes: [{q: {v: {$gte: 1118}}, limit: 0}]})).n);
assert.eq(1, assert.commandWorked(testDB.runCommand({delete: "c", deletes: [{q: {m: 7, v: 1117}, limit: 1}]})).n);
assert.eq(upTo(1117), values(c.find()));
assert.eq(0, assert.commandWorked(testDB.runCommand({delete: "c", deletes: [{q: {v: -3}, limit: 1}]})).n);
assert.commandFailedWithCode(testDB.runCommand({update: "c", updates: [{q: {m: 1}, u: {$set: {v: 1}}, multi: true}]}), 72);
assert.commandFailedWithCode(testDB.runCommand({update: "c", updates: [{q: {m: 1}, u: {$set: {m: 1}}}]}), 72);
assert.eq(upTo(1117), values(c.find()));
const parted = testDB.empty;
assert.commandWorked(parted.insert(upTo(100).map((v) => ({t: new Date(start + v), m: {b: v % 2, a: v % 10}, v}))));
assert.commandWorked(db.adminCommand({split: bucketsOf(parted).getFullName(), middle: {"meta.a": 5}}));
moveRange(bucketsOf(parted), {min: {"meta.a": 5}, max: {"meta.a": MaxKey}}, second);
assert.commandWorked(testDB.runCommand({update: "empty", updates: [{q: {"m.b": 1}, u: {$set: {"m.c": "x"}}, multi: true}]}));
assert.eq(50, parted.find({"m.c": "x"}).itcount());
assert.eq(10, parted.find({"m.a": 7, "m.b": 1}).itcount());

// Indexes, options and sizes are those of both halves, in terms of measurements.
moveRange(buckets, {min: {meta: 5}, max: {meta: MaxKey}}, second);
moveRange(buckets, {min: {meta: MinKey}, max: {meta: 5}}, first);
assert.eq(["m_1_t_1"], c.getIndexes().map((spec) => spec.name));
assert.commandWorked(c.createIndex({v: 1}));
assert.commandFailedWithCode(testDB.runCommand({createIndexes: "c", indexes: [{key: {v: 1}, name: "u", unique: true}]}), 72);
assert.eq([{m: 1, t: 1}, {v: 1}], c.getIndexes().map((spec) => spec.key));
for (const shard of [first, second]) {
    const names = shardConnection(db, shard).getDB(testDB.getName()).getCollection(buckets.getName()).getIndexes().map((spec) => spec.name);
    assert.eq(["m_1_t_1", "v_1"], names.filter((name) => name !== "_id_").sort(), shard);
}
assert.eq([3], c.find({v: 3}).hint({v: 1}).toArray().map((d) => d.v));
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: {m: 1, t: 1}}), 370);
assert.commandWorked(c.dropIndex({v: 1}));
assert.eq(["m_1_t_1"], c.getIndexes().map((spec) => spec.name));
assert.commandWorked(testDB.runCommand({collMod: "c", expireAfterSeconds: 1000000000}));
for (const shard of [first, second]) {
    const [info] = shardConnection(db, shard).getDB(testDB.getName()).getCollectionInfos({name: buckets.getName()});
    assert.eq(1000000000, Number(info.options.expireAfterSeconds), shard);
}
assert.commandWorked(testDB.runCommand({collMod: "c", timeseries: {granularity: "hours"}}));
assert.eq("hours", collectionEntry(buckets).timeseriesFields.granularity);
const stats = assert.commandWorked(testDB.runCommand({collStats: "c"}));
assert.eq([true, c.getFullName(), buckets.find().itcount()], [stats.sharded, stats.ns, Number(stats.timeseries.bucketCount)]);
assert.eq([first, second], Object.keys(stats.shards).sort());
assert.eq(true, assert.commandWorked(testDB.runCommand({validate: "c"})).valid);
assert.eq(2, c.aggregate([{$collStats: {storageStats: {}}}]).itcount());

// What no key can be, and what cannot be done with a sharded one.
const fresh = (key, more) => db.adminCommand(Object.assign({shardCollection: `${testDB}.no`, key, timeseries: series}, more));
for (const key of [{v: 1}, {t: 1, m: 1}, {_id: 1}, {m: 1, v: 1}, {t: "hashed"}]) {
    assert.commandFailedWithCode(fresh(key), 72, tojson(key));
}
assert.commandFailedWithCode(fresh({m: 1}, {unique: true}), 72);
assert.commandFailedWithCode(db.adminCommand({shardCollection: `${testDB}.names`, key: {m: 1}, timeseries: series}), 72);
assert.commandFailedWithCode(
    db.adminCommand({shardCollection: `${testDB}.c`, key: {m: 1}, timeseries: {timeField: "other"}}), 72);
assert.commandFailedWithCode(db.adminCommand({shardCollection: buckets.getFullName(), key: {meta: 1}}), 20);
assert.commandFailedWithCode(testDB.runCommand({create: "c", timeseries: series}), 48);
const out = {$out: {db: testDB.getName(), coll: "c", timeseries: series}};
assert.throwsWithCode(() => testDB.names.aggregate([{$set: {t: new Date(start)}}, out]), 20);
assert.eq(upTo(1117), values(c.find()));

// With the database's primary goes the view; the buckets stay where they are.
const before = [first, second].map((shard) => heldBy(buckets, shard));
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
assert.eq(before, [first, second].map((shard) => heldBy(buckets, shard)));
assert.eq(["timeseries"], testDB.getCollectionInfos({name: "c"}).map((info) => info.type));
assert.eq(upTo(1117), values(c.find()));
assert.commandWorked(c.insert(measurements(10, 1117)));
assert.eq(upTo(1127), values(c.find()));
assert.eq([], testDB.checkMetadataConsistency().toArray());

// A drop takes view, buckets, and what the catalog says of them; the name is free.
assert(c.drop());
assert.eq(null, collectionEntry(buckets));
assert.eq([0, 0], [first, second].map((shard) => heldBy(buckets, shard)));
assert.eq([], testDB.getCollectionInfos({name: /^(system\.buckets\.)?c$/}));
assert.commandWorked(c.insert({_id: 1}));
assert.eq([{_id: 1}], c.find().toArray());
assert(c.drop());
assert.commandWorked(testDB.createCollection("c", {timeseries: series}));
assert.commandWorked(c.insert(measurements(10, 0)));
assert.eq(upTo(10), values(c.find()));
assert.eq([0, 10], [first, second].map((shard) => heldBy(buckets, shard)));
assert.eq([], testDB.checkMetadataConsistency().toArray());
dropWithRemains(testDB);
assert.eq(0, testDB.getSiblingDB("config").collections.find({_id: /^timeseries_sharded\./}).itcount());
