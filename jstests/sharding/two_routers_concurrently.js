/**
 * Clients of two routers write while a third moves ranges; what each was told is what is there in the end.
 * It fails if an acknowledged write is lost or done twice because one router's knowledge was older.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 3});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const ns = "two.c";
assert.commandWorked(st.s0.adminCommand({enableSharding: "two", primaryShard: first}));
assert.commandWorked(st.s0.adminCommand({shardCollection: ns, key: {k: 1}}));
assert.commandWorked(st.s0.adminCommand({split: ns, middle: {k: 50}}));
const documents = [];
for (let k = 0; k < 100; k++) {
    documents.push({_id: k, k: k, n: 0});
}
assert.commandWorked(st.s0.getCollection(ns).insert(documents));

const stop = new CountDownLatch(1);
const writer = function(host, seed, stop) {
    const c = new Mongo(host).getDB("two").c;
    const counts = {increments: 0, inserted: 0, removed: 0, read: 0};
    for (let i = 0; stop.getCount() > 0; i++) {
        const k = (i * 7 + seed * 13) % 100;
        const updated = c.update({k: k}, {$inc: {n: 1}});
        if (updated.hasWriteError() || updated.nModified !== 1) {
            throw new Error(`update of ${k}: ${tojson(updated)}`);
        }
        counts.increments++;
        if (i % 5 === 0) {
            const modified = c.findAndModify({query: {k: (k + 31) % 100}, update: {$inc: {n: 1}}, new: true});
            if (modified === null) {
                throw new Error(`findAndModify of ${(k + 31) % 100} found nothing`);
            }
            counts.increments++;
        }
        if (i % 3 === 0) {
            const id = `${seed}-${i}`;
            c.insert({_id: id, k: k + 0.5, own: seed});
            counts.inserted++;
            if (i % 6 === 0) {
                const gone = c.remove({_id: id, k: k + 0.5});
                if (gone.nRemoved !== 1) {
                    throw new Error(`removing ${id}: ${tojson(gone)}`);
                }
                counts.removed++;
            }
        }
        if (i % 10 === 0) {
            const found = c.find({own: {$exists: false}}).batchSize(17).toArray().length;
            if (found !== 100) {
                throw new Error(`a scan found ${found} documents of 100`);
            }
            counts.read++;
        }
    }
    return counts;
};
const threads = [1, 2].map((seed) => new Thread(writer, st["s" + seed].host, seed, stop));
threads.forEach((t) => t.start());
assert.soon(() => [1, 2].every((seed) => st.s0.getCollection(ns).find({own: seed}).itcount() > 0));
let moves = 0;
try {
    let owner = first;
    for (let i = 0; i < 20; i++) {
        owner = owner === first ? second : first;
        const bounds = i % 2 ? {min: {k: 50}, max: {k: MaxKey}} : {min: {k: 20}, max: {k: 50}};
        const reply = st.s0.adminCommand(Object.assign({moveRange: ns, toShard: owner, waitForDelete: true}, bounds));
        assert.commandWorked(reply);
        moves++;
    }
} finally {
    stop.countDown();
}
const counts = threads.map((t) => t.returnData());
jsTestLog(tojson({moves, counts}));
const coll = st.s0.getCollection(ns);
const sum = coll.aggregate([{$group: {_id: null, n: {$sum: "$n"}}}]).next().n;
assert.eq(counts[0].increments + counts[1].increments, sum);
counts.forEach((c, i) => assert.eq(c.inserted - c.removed, coll.find({own: i + 1}).itcount()));
assert.gt(counts[0].read + counts[1].read, 0);
assert.eq(100, coll.find({own: {$exists: false}}).itcount());
st.stop();
