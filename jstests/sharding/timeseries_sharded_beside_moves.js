/**
 * Buckets of a sharded time series move between shards while measurements come: each that was acknowledged is there once.
 * It fails if a measurement is added to a bucket that the shard has given away, is lost with one that moves, or is written again by
 * a router that targets it anew.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, dropWithRemains, freshDatabase, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "timeseries_sharded_beside_moves", first);
const series = {timeField: "t", metaField: "m"};

for (const [name, key, points] of [
         ["by_meta", {m: 1}, [{meta: 3}, {meta: 6}]],
         ["by_time", {m: 1, t: 1}, [{meta: 3, "control.min.t": new Date(1700000000000)}, {meta: 6, "control.min.t": MinKey}]],
]) {
    const [coll, buckets] = [testDB.getCollection(name), testDB.getCollection(`system.buckets.${name}`)];
    assert.commandWorked(db.adminCommand({shardCollection: coll.getFullName(), key, timeseries: series}));
    for (const middle of points) {
        assert.commandWorked(db.adminCommand({split: buckets.getFullName(), middle}));
    }
    const stop = new CountDownLatch(1);
    const write = function(host, db, name, from, stop) {
        const c = new Mongo(host).getDB(db).getCollection(name);
        const acknowledged = [];
        // More than a shard writes at once.
        const n = from === 0 ? 10 : 1200;
        for (let v = from; stop.getCount() > 0 && v < from + 20000; v += n) {
            const batch = Array.from({length: n}, (_, i) => ({t: new Date(1699999900000 + (v - from) * 2 + i), m: i % 10, v: v + i}));
            const reply = c.getDB().runCommand({insert: name, documents: batch, ordered: (v / n) % 2 === 0});
            if (reply.ok === 1 && !reply.writeErrors) {
                acknowledged.push(...batch.map((d) => d.v));
            }
        }
        return acknowledged;
    };
    const writers = [0, 1000000].map((from) => {
        const writer = new Thread(write, db.getMongo().host, testDB.getName(), name, from, stop);
        writer.start();
        return writer;
    });
    assert.soon(() => coll.find().limit(1).itcount() > 0);
    for (let round = 0; round < 3; round++) {
        chunksOf(buckets).forEach((chunk, i) => {
            const to = (round + i) % 2 === 0 ? second : first;
            if (chunk.shard !== to) {
                moveRange(buckets, {min: chunk.min, max: chunk.max}, to);
            }
        });
        const seen = coll.aggregate([{$group: {_id: "$v", n: {$sum: 1}}}, {$match: {n: {$gt: 1}}}]).toArray();
        assert.eq([], seen, "a measurement is seen twice");
    }
    stop.countDown();
    const acknowledged = writers.flatMap((writer) => writer.returnData());
    assert.gt(acknowledged.length, 0);
    const whole = coll.find().toArray();
    const found = new Set(whole.map((d) => d.v));
    assert.eq(found.size, whole.length, "a measurement is there twice");
    acknowledged.forEach((v) => assert(found.has(v), `measurement ${v} was acknowledged and lost`));
    // What a filter says of meta and time leads to the shards that have it.
    for (const d of whole.filter((_, i) => i % Math.ceil(whole.length / 10) === 0)) {
        assert.eq(1, coll.find({m: d.m, t: d.t, v: d.v}).itcount(), tojson(d));
        assert.eq(1, coll.find({t: {$gte: d.t, $lte: d.t}, v: d.v}).itcount(), tojson(d));
    }
}
dropWithRemains(testDB);
