/**
 * A time series moves to another shard by itself, gets another shard key, a longer one, or none any more, while clients go on to write to it
 * and read it by its name: every acknowledged measurement is there once, and a repeated insert or delete is recognised afterwards.
 * It fails if a router goes on to look for the buckets where they were, the catalog forgets what they are, or a measurement is lost, doubled,
 * or removed twice.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, collectionEntry, heldBy, moveRange, ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, testDB} = ownCluster("moves", {mongos: 2});
const other = st.s1.getDB(testDB.getName());
const series = {timeField: "t", metaField: "m", granularity: "minutes"};
const coll = testDB.c;
const ns = coll.getFullName();
const buckets = testDB.getCollection("system.buckets.c");
const start = 1699920000000;
const upTo = (n) => Array.from({length: n}, (_, i) => i);
const measurement = (v) => ({t: new Date(start + (v % 500) * 60000), m: {a: v % 10, b: v % 3}, v});
const values = (c, filter) => c.find(filter || {}).toArray().map((d) => d.v).sort((a, b) => a - b);
const held = () => [first, second].map((shard) => heldBy(buckets, shard));

assert.commandWorked(testDB.createCollection("c", {timeseries: series}));
assert.commandWorked(coll.createIndex({"m.b": 1, t: -1}));
assert.commandWorked(coll.insert(upTo(500).map(measurement)));
assert.eq(500, other.c.find().itcount());
let present = upTo(500);

let next = 500;

/** Changes the placement beside writers, and checks what clients see through both routers afterwards. */
function change(command, expected) {
    const fresh = upTo(12).map((i) => next + i);
    next += 12;
    const repeated = [
        {insert: "c", documents: fresh.map(measurement)},
        {delete: "c", deletes: [{q: {v: present[0]}, limit: 1}]},
        {findAndModify: "c", query: {v: present[1]}, remove: true},
    ].map((c) => Object.assign({}, c, {lsid: {id: UUID()}, txnNumber: NumberLong(1)}));
    const once = repeated.map((c) => assert.commandWorked(testDB.runCommand(c)));
    assert.eq([12, 1, 1], [once[0].n, once[1].n, once[2].lastErrorObject.n]);
    present = present.slice(2).concat(fresh);

    const stop = new CountDownLatch(1);
    const writers = [st.s0, st.s1].map((router, i) => {
        const writer = new Thread(function(host, db, from, start, stop) {
            const c = new Mongo(host).getDB(db).c;
            const acknowledged = [];
            for (let v = from; stop.getCount() > 0; v++) {
                const document = {t: new Date(start + (v % 500) * 60000), m: {a: v % 10, b: v % 3}, v};
                const reply = c.getDB().runCommand({insert: "c", documents: [document]});
                if (reply.ok !== 1 || reply.writeErrors) {
                    continue;
                }
                // Some of them go again.
                if (v % 4 === 0) {
                    assert.eq(1, assert.commandWorked(c.getDB().runCommand({delete: "c", deletes: [{q: {v}, limit: 1}]})).n);
                } else {
                    acknowledged.push(v);
                }
            }
            return acknowledged;
        }, router.host, testDB.getName(), next + 100000 * i, start, stop);
        writer.start();
        return writer;
    });
    assert.soon(() => coll.find({v: {$gte: next}}).itcount() > 5);
    assert.commandWorked(admin.runCommand(command), tojson(command));
    stop.countDown();
    present = present.concat(...writers.map((writer) => writer.returnData())).sort((a, b) => a - b);
    next += 200000;

    for (const c of [coll, other.c]) {
        assert.eq(present, values(c), tojson(command));
        assert.eq(present.filter((v) => v % 10 === 7), values(c, {"m.a": 7}));
        assert.eq(present.filter((v) => v % 500 === 9), values(c, {t: new Date(start + 9 * 60000)}));
        assert.eq(present.length, c.aggregate([{$count: "n"}]).toArray()[0].n);
        assert.commandWorked(c.insert(measurement(next)));
        present.push(next++);
    }
    repeated.forEach((c, i) => {
        for (const through of [other, testDB]) {
            const again = assert.commandWorked(through.runCommand(c));
            assert.eq([once[i].n, once[i].value], [again.n, again.value], tojson(c));
        }
    });
    assert.eq(present, values(coll));
    const entry = collectionEntry(buckets);
    for (const [field, value] of Object.entries(expected)) {
        assert.eq(value, entry[field], tojson(entry));
    }
    assert.eq(["t", "m", "minutes"], [entry.timeseriesFields.timeField, entry.timeseriesFields.metaField, entry.timeseriesFields.granularity]);
    assert.eq(null, collectionEntry(coll));
    assert.eq(["timeseries"], testDB.getCollectionInfos({name: "c"}).map((info) => info.type));
    assert.eq(["m_1_t_1", "m.b_1_t_-1"], coll.getIndexes().map((spec) => spec.name).slice(0, 2));
    assert.eq([], testDB.checkMetadataConsistency().toArray());
    assert.eq([], testDB.getCollectionNames().filter((name) => name.startsWith("system.resharding")));
    assert.eq([1, 0], [st.s.getDB("config").collections.find({_id: /^moves\./}).itcount(), st.s.getDB("config").reshardingOperations.find().itcount()]);
}

// Alone on another shard, and back: what is asked of its name finds it there.
change({moveCollection: ns, toShard: second}, {unsplittable: true});
assert.eq(0, held()[0]);
assert.commandWorked(other.runCommand({collMod: "c", expireAfterSeconds: 1000000000}));
assert.commandWorked(coll.createIndex({v: 1}));
assert.eq([present[3]], coll.find({v: present[3]}).hint({v: 1}).toArray().map((d) => d.v));
assert.commandWorked(coll.dropIndex({v: 1}));
const stats = assert.commandWorked(testDB.runCommand({collStats: "c"}));
assert.eq([false, held()[1]], [stats.sharded, Number(stats.timeseries.bucketCount)]);
assert.eq(true, assert.commandWorked(testDB.runCommand({validate: "c"})).valid);
assert.commandWorked(testDB.runCommand({update: "c", updates: [{q: {"m.a": 3}, u: {$set: {"m.c": 1}}, multi: true}]}));
assert.eq(present.filter((v) => v % 10 === 3), values(other.c, {"m.c": 1}));
assert.commandWorked(testDB.from.insert({t: new Date(start), m: 1}));
assert.throwsWithCode(() => testDB.from.aggregate([{$out: {db: "moves", coll: "c", timeseries: {timeField: "t", metaField: "m"}}}]), [20, 7406103]);
assert.commandFailedWithCode(testDB.runCommand({create: "c", timeseries: series}), 48);
assert.commandWorked(admin.runCommand({movePrimary: "moves", to: second}));
assert.commandWorked(admin.runCommand({movePrimary: "moves", to: first}));
assert.eq(present, values(coll));
change({moveCollection: ns, toShard: first}, {unsplittable: true});
assert.eq(0, held()[1]);

// Sharded where it is, refined, and resharded, by all that a time series can be sharded by.
assert.commandFailedWithCode(admin.runCommand({shardCollection: ns, key: {"m.a": 1}}), 72);
assert.commandWorked(coll.createIndex({"m.a": 1, t: 1}));
change({shardCollection: ns, key: {"m.a": 1}, timeseries: {timeField: "t", metaField: "m"}}, {key: {"meta.a": 1}, unsplittable: undefined});
assert.commandWorked(admin.runCommand({split: buckets.getFullName(), middle: {"meta.a": 5}}));
moveRange(buckets, {min: {"meta.a": 5}, max: {"meta.a": MaxKey}}, second);
assert.commandFailedWithCode(admin.runCommand({refineCollectionShardKey: ns, key: {"m.a": 1, v: 1}}), 72);
assert.commandFailedWithCode(admin.runCommand({reshardCollection: ns, key: {v: 1}}), 72);
change({refineCollectionShardKey: ns, key: {"m.a": 1, t: 1}}, {key: {"meta.a": 1, "control.min.t": 1}});
assert.eq([first, second], chunksOf(buckets).map((chunk) => chunk.shard));
change({reshardCollection: ns, key: {m: "hashed"}, numInitialChunks: 4}, {key: {meta: "hashed"}});
assert.eq(4, chunksOf(buckets).length);
assert(held().every((n) => n > 0), tojson(held()));
assert.commandWorked(admin.runCommand({addShardToZone: first, zone: "early"}));
const zones = [{zone: "early", min: {t: MinKey}, max: {t: new Date(start + 3600000)}}];
change({reshardCollection: ns, key: {t: 1}, zones}, {key: {"control.min.t": 1}});
const early = chunksOf(buckets).filter((chunk) => chunk.max["control.min.t"] <= new Date(start + 3600000));
assert.eq([first], [...new Set(early.map((chunk) => chunk.shard))]);
assert(coll.getIndexes().some((spec) => tojson(spec.key) === tojson({t: 1})), tojson(coll.getIndexes()));
chunksOf(buckets).slice(-1).forEach((c) => moveRange(buckets, {min: c.min, max: c.max}, c.shard === first ? second : first));
assert.eq(present, values(coll));
change({reshardCollection: ns, key: {"m.b": 1, t: 1}, zones: []}, {key: {"meta.b": 1, "control.min.t": 1}});
change({unshardCollection: ns, toShard: second}, {unsplittable: true});
assert.eq(0, held()[0]);
assert.commandFailedWithCode(admin.runCommand({unshardCollection: ns, toShard: second}), 118);

// Untracked again where its database is; gone with its name.
change({moveCollection: ns, toShard: first}, {unsplittable: true});
assert.commandWorked(admin.runCommand({untrackUnshardedCollection: ns}));
assert.eq(null, collectionEntry(buckets));
assert.eq(present, values(coll));
assert.commandWorked(other.c.insert(measurement(next)));
assert.eq(present.concat([next]), values(coll));
assert.commandWorked(admin.runCommand({moveCollection: ns, toShard: second}));
assert(other.c.drop());
assert.eq([0, 0], held());
assert.eq([null, []], [collectionEntry(buckets), testDB.getCollectionInfos({name: /c$/})]);
assert.eq([], testDB.checkMetadataConsistency().toArray());
st.stop();
