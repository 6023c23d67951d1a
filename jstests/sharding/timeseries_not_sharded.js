/**
 * The buckets of a time series are not sharded or moved by their own name: the refusal leaves nothing behind. movePrimary takes along those
 * that the catalog does not know. It fails if a refused command leaves an entry of the catalog, or a measurement is lost.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "timeseries_not_sharded", first);
const config = db.getSiblingDB("config");
const series = {timeField: "t", metaField: "m"};
assert.commandWorked(testDB.createCollection("ts", {timeseries: series}));
const measurements = (n, from) =>
    Array.from({length: n}, (_, i) => ({t: new Date(1700000000000 + (from + i) * 1000), m: i % 7, v: from + i}));
assert.commandWorked(testDB.ts.insert(measurements(500, 0)));
assert.commandWorked(testDB.ts.createIndex({m: 1, t: -1}));

const left = () => ({
    collections: config.collections.find({_id: /^timeseries_not_sharded\./}).toArray(),
    chunks: config.chunks.find().itcount(),
    names: testDB.getCollectionInfos().map((info) => [info.name, info.type]).sort(),
    indexes: testDB.ts.getIndexes(),
    buckets: testDB.getCollection("system.buckets.ts").getIndexes(),
});
const before = left();
const [ts, bucketsOfTs] = ["ts", "system.buckets.ts"].map((name) => `${testDB.getName()}.${name}`);
for (const [command, code] of [
         [{moveCollection: bucketsOfTs, toShard: second}, 20],
         [{reshardCollection: bucketsOfTs, key: {m: 1}}, 20],
         [{unshardCollection: bucketsOfTs, toShard: second}, 20],
         [{reshardCollection: ts, key: {m: 1}}, 118],
         [{reshardCollection: ts, key: {v: 1}}, 72],
         [{unshardCollection: ts, toShard: second}, 118],
         [{refineCollectionShardKey: ts, key: {m: 1, t: 1}}, 118],
         [{moveCollection: ts, toShard: "none"}, 70],
]) {
    assert.commandFailedWithCode(db.adminCommand(command), code, tojson(command));
}
for (const key of [{m: 1}, {meta: 1}]) {
    const command = {shardCollection: `${testDB.getName()}.system.buckets.ts`, key};
    assert.commandFailedWithCode(db.adminCommand(command), 20, tojson(command));
}
assert.eq(before, left());

assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
assert.eq(500, testDB.ts.find().itcount());
const buckets = testDB.getCollection("system.buckets.ts");
assert.eq([0, buckets.find().itcount()], [heldBy(buckets, first), heldBy(buckets, second)]);
assert.eq(before, left());
assert.commandWorked(testDB.ts.insert(measurements(500, 500)));
assert.eq(1000, testDB.ts.find().itcount());
assert.eq(1000, testDB.ts.distinct("v").length);

// A writer that goes on while the primary moves back: each acknowledged measurement is there once.
const stop = new CountDownLatch(1);
const writer = new Thread(function(host, name, stop) {
    const c = new Mongo(host).getDB(name).ts;
    const acknowledged = [];
    for (let v = 10000; stop.getCount() > 0; v++) {
        if (!c.insert({t: new Date(1700000000000 + v), m: "w", v}).hasWriteError()) {
            acknowledged.push(v);
        }
    }
    return acknowledged;
}, db.getMongo().host, testDB.getName(), stop);
writer.start();
assert.soon(() => testDB.ts.find({m: "w"}).itcount() > 0);
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: first}));
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
stop.countDown();
const acknowledged = writer.returnData();
const values = testDB.ts.find({m: "w"}).toArray().map((d) => d.v);
const found = new Set(values);
assert.eq(found.size, values.length, "a measurement is there twice");
acknowledged.forEach((v) => assert(found.has(v), `measurement ${v} was acknowledged and lost`));
assert.eq(1000, testDB.ts.find({m: {$ne: "w"}}).itcount());
testDB.ts.deleteMany({m: 0});
assert.eq(0, testDB.ts.find({m: 0}).itcount());
assert(testDB.ts.drop());
assert.eq([], testDB.getCollectionNames().filter((name) => name !== "system.views"));
assert.commandWorked(testDB.dropDatabase());
