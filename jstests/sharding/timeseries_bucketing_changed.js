/**
 * collMod changes how long the buckets of a sharded time series are on every shard and in the catalog, so that each router goes on to find
 * and to place measurements, and a repeated insert is recognised, also where the new bucketing gives it another shard.
 * It fails if a shard or the catalog keeps the old bucketing, a router that has not heard of it misses measurements of longer buckets, or
 * a repetition is executed on another shard than before.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, collectionEntry, moveRange, ownCluster, shardConnection} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, testDB} = ownCluster("bucketing", {mongos: 2});
const other = st.s1.getDB(testDB.getName());
const series = {timeField: "t", metaField: "m"};
// The begin of a day, and 65 minutes later.
const start = 1699920000000;
const middle = start + 65 * 60 * 1000;
const upTo = (n) => Array.from({length: n}, (_, i) => i);
const values = (coll, filter) => coll.find(filter || {}).toArray().map((d) => d.v).sort((a, b) => a - b);

for (const [name, key, split] of [
         ["by_meta", {m: 1}, {meta: 5}],
         ["by_time", {t: 1}, {"control.min.t": new Date(middle)}],
]) {
    const coll = testDB.getCollection(name);
    const buckets = testDB.getCollection(`system.buckets.${name}`);
    assert.commandWorked(admin.runCommand({shardCollection: coll.getFullName(), key, timeseries: series}));
    assert.commandWorked(admin.runCommand({split: buckets.getFullName(), middle: split}));
    const [, upper] = chunksOf(buckets);
    moveRange(buckets, {min: upper.min, max: upper.max}, second);

    const lsid = {id: UUID()};
    let v = 0;
    const insert = (minutes) => ({insert: name, documents: minutes.map((n) => ({t: new Date(start + n * 60000), m: v % 10, v: v++}))});
    const number = (command, txnNumber) => Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(txnNumber)});
    // On both sides of the split, in hours that the split divides.
    const before = number(insert([0, 10, 60, 64, 65, 66, 119, 120, 600]), 1);
    assert.commandWorked(testDB.runCommand(before));
    assert.eq(upTo(v), values(other.getCollection(name)));

    const changed = (timeseries) => testDB.runCommand({collMod: name, timeseries});
    const check = (expected) => {
        const definitions = [first, second].map((shard) => {
            const [info] = shardConnection(testDB, shard).getDB(testDB.getName())
                               .getCollectionInfos({name: buckets.getName()});
            return info.options.timeseries;
        });
        definitions.push(collectionEntry(buckets).timeseriesFields);
        definitions.push(other.getCollectionInfos({name})[0].options.timeseries);
        definitions.forEach((d) => Object.keys(expected).forEach((f) => assert.eq(expected[f], d[f], tojson(d))));
        assert.eq(undefined, collectionEntry(buckets).allowMigrations);
        assert.eq([], testDB.checkMetadataConsistency().toArray());
    };
    assert.commandFailedWithCode(changed({granularity: "days"}), 2);
    assert.commandFailedWithCode(changed({bucketMaxSpanSeconds: 7200}), 72);
    assert.commandFailedWithCode(testDB.runCommand({collMod: name, timeseries: 5}), 14);
    assert.commandFailedWithCode(changed({bucketMaxSpanSeconds: 10, bucketRoundingSeconds: 10}), 72);
    check({granularity: "seconds", bucketMaxSpanSeconds: 3600});
    assert.commandWorked(changed({granularity: "seconds"}));
    assert.commandWorked(testDB.runCommand({collMod: name, timeseries: {granularity: "minutes"}, expireAfterSeconds: 1000000000}));
    check({granularity: "minutes", bucketMaxSpanSeconds: 86400});
    assert.eq(1000000000, Number(testDB.getCollectionInfos({name})[0].options.expireAfterSeconds));
    assert.commandFailedWithCode(changed({granularity: "seconds"}), 72);

    // The repetition goes where the new bucketing says, and finds what was done.
    for (const through of [other, testDB]) {
        const again = assert.commandWorked(through.runCommand(before));
        assert.eq([9, upTo(9)], [again.n, again.retriedStmtIds]);
        assert.eq(upTo(v), values(coll));
    }
    // A router with the old bucketing places measurements by the new one, and finds those of longer buckets.
    const after = number(insert([1, 61, 64, 65, 90, 119, 121, 700]), 2);
    assert.commandWorked(other.runCommand(after));
    for (const c of [coll, other.getCollection(name)]) {
        assert.eq(upTo(v), values(c));
        for (const d of c.find().toArray()) {
            assert.eq([d.v], values(c, {t: d.t, v: d.v}), tojson(d));
            assert.eq([d.v], values(c, {t: {$gte: d.t, $lt: new Date(d.t.getTime() + 1)}, v: d.v}), tojson(d));
        }
    }
    assert.commandWorked(changed({bucketMaxSpanSeconds: 172800, bucketRoundingSeconds: 172800}));
    check({bucketRoundingSeconds: 172800, bucketMaxSpanSeconds: 172800});
    assert.eq(8, assert.commandWorked(other.runCommand(after)).n);
    assert.commandWorked(other.runCommand(insert([2, 62, 2000])));
    // Ranges move with what sessions have done to measurements that belong to them by now.
    chunksOf(buckets).forEach((chunk) => moveRange(buckets, {min: chunk.min, max: chunk.max}, chunk.shard === first ? second : first));
    assert.eq(8, assert.commandWorked(testDB.runCommand(after)).n);
    assert.eq(upTo(v), values(other.getCollection(name)));
    assert.eq(1, assert.commandWorked(other.runCommand({delete: name, deletes: [{q: {t: new Date(start + 65 * 60000), v: 4}, limit: 1}]})).n);

    // Beside writers: what they were told is there, once.
    const stop = new CountDownLatch(1);
    const writers = [st.s0, st.s1].map((router, i) => {
        const writer = new Thread(function(host, db, name, i, start, stop) {
            const connection = new Mongo(host);
            const acknowledged = [];
            for (let n = 0; stop.getCount() > 0; n++) {
                const v = 10000 * (i + 1) + n;
                const document = {t: new Date(start + (n % 300) * 60000), m: n % 10, v};
                const reply = connection.getDB(db).runCommand({insert: name, documents: [document]});
                if (reply.ok === 1 && !reply.writeErrors) {
                    acknowledged.push(v);
                }
            }
            return acknowledged;
        }, router.host, testDB.getName(), name, i, start, stop);
        writer.start();
        return writer;
    });
    for (const days of [3, 4, 5]) {
        assert.soon(() => coll.find({v: {$gte: 10000}}).itcount() > 10 * days);
        assert.commandWorked(changed({bucketMaxSpanSeconds: 86400 * days, bucketRoundingSeconds: 86400 * days}));
    }
    stop.countDown();
    const acknowledged = writers.flatMap((writer) => writer.returnData()).sort((a, b) => a - b);
    assert.eq(acknowledged, values(coll, {v: {$gte: 10000}}));
    assert.eq(acknowledged, values(other.getCollection(name), {t: {$lt: new Date(start + 86400000)}, v: {$gte: 10000}}));
    check({bucketMaxSpanSeconds: 86400 * 5});
}
st.stop();
