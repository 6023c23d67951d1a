/**
 * A router keeps nothing: another one started over the same config servers answers the same.
 * It fails if a router needs what a former one knew, or a shard refuses a router that has just started.
 *
 * @tags: [requires_own_servers]
 */
import {openCursors} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, mongos: 1});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const ns = "r.c";
assert.commandWorked(st.s.adminCommand({enableSharding: "r", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second}));
for (let x = -20; x < 20; x++) {
    assert.commandWorked(st.s.getCollection(ns).insert({_id: x, x: x}));
}
const lsid = {id: UUID()};
const retried = {insert: "c", documents: [{_id: "r", x: 5}], lsid: lsid, txnNumber: NumberLong(1)};
assert.commandWorked(st.s.getDB("r").runCommand(retried));
const cursor = st.s.getDB("r").runCommand({find: "c", batchSize: 2}).cursor;
const openOnShards = () => openCursors(st.shard0, st.shard1);
assert.gt(openOnShards(), 0);
const before = st.s.getDB("config").databases.find().sort({_id: 1}).toArray();

st.restartMongos(0);
const coll = st.s0.getCollection(ns);
assert.eq(41, coll.find().itcount());
assert.eq(5, coll.findOne({_id: 5})._id);
assert.eq(before, st.s0.getDB("config").databases.find().sort({_id: 1}).toArray());
assert.eq(2, assert.commandWorked(st.s0.adminCommand({listShards: 1})).shards.length);

// A router's cursors go with it, and it has given back those it held on the shards.
assert.soon(() => openOnShards() === 0, () => `${openOnShards()} cursors of a stopped router are open on shards`, 10 * 1000);
assert.commandFailedWithCode(st.s0.getDB("r").runCommand({getMore: cursor.id, collection: "c"}), 43);

// A write repeated through the new router was done through the old one.
const reply = assert.commandWorked(st.s0.getDB("r").runCommand(retried));
assert.eq(1, reply.n);
assert.eq([0], reply.retriedStmtIds);
assert.eq(41, coll.find().itcount());

// A router that is killed leaves nothing half done on the shards.
const threads = [];
for (let i = 0; i < 2; i++) {
    threads.push(new Thread(function(host, i) {
        const c = new Mongo(host).getDB("r").c;
        let acknowledged = 0;
        try {
            for (let n = 0; n < 100000; n++) {
                const done = c.insert({_id: `${i}-${n}`, x: n % 40 - 20});
                if (done.hasWriteError() || done.nInserted !== 1) {
                    break;
                }
                acknowledged = n + 1;
            }
        } catch (e) {
            // The router is gone.
        }
        return acknowledged;
    }, st.s0.host, i));
    threads[i].start();
}
assert.soon(() => [/^0-/, /^1-/].every((own) => coll.find({_id: own}).itcount() > 20));
st.killMongos(0);
const acknowledged = threads.map((t) => t.returnData());
st.restartMongos(0);
acknowledged.forEach((n, i) => {
    const found = st.s0.getCollection(ns).find({_id: {$regex: `^${i}-`}}).itcount();
    assert(found === n || found === n + 1, `${found} documents for ${n} acknowledged inserts`);
});
assert.commandWorked(st.s0.getCollection(ns).createIndex({y: 1}));
assert.commandWorked(st.s0.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: first, waitForDelete: true}));
st.stop();
