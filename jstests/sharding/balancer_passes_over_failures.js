/**
 * A migration that can never succeed holds up neither its collection nor another one.
 * It fails if the balancer chooses the same failing chunk again and again, or a failure ends the round of the others.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, quickRounds} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, other: {chunkSize: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "f", primaryShard: first}));
const testDB = st.s.getDB("f");
const pad = "p".repeat(64 * 1024);
function fill(coll) {
    assert.commandWorked(admin.runCommand({shardCollection: coll.getFullName(), key: {x: 1}}));
    const bulk = coll.initializeUnorderedBulkOp();
    for (let i = 0; i < 160; i++) {
        bulk.insert({_id: i, x: i, pad: pad});
    }
    assert.commandWorked(bulk.execute());
}
fill(testDB.good);
fill(testDB.bad);
// The lowest range cannot arrive: the other shard holds a document with an _id of it, outside of the range.
assert.commandWorked(admin.runCommand({split: "f.bad", middle: {x: 10}}));
assert.commandWorked(admin.runCommand({moveRange: "f.bad", min: {x: 150}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(st.shard1.getDB("f").bad.insert({_id: 3, x: 1000}));

for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const compliant = (ns) => assert.commandWorked(admin.runCommand({balancerCollectionStatus: ns})).balancerCompliant;
for (const ns of ["f.good", "f.bad"]) {
    assert.soon(() => compliant(ns), () => tojson(config.actionlog.find().sort({$natural: -1}).limit(5).toArray()),
                90 * 1000, 200);
}
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();

// What failed was tried, written down, and left where it was.
assert.eq(first, chunksOf(testDB.bad)[0].shard);
const failures = config.actionlog.find({what: "balancer.error", ns: "f.bad", "details.step": "migration"}).itcount();
assert.gte(failures, 1);
assert.lt(failures, 40, "a failing chunk rests longer each time");
const round = config.actionlog.findOne({what: "balancer.round", "details.errorOccured": true});
assert(round.details.errmsg, tojson(round));
assert(round.details.moves.some((m) => m.ns === "f.bad" && !m.moved && m.reason === "chunksImbalance"), tojson(round));
assert.eq(160, testDB.good.find().itcount());
assert.eq(160, testDB.bad.find({x: {$lt: 1000}}).itcount());
st.stop({skipCheckOrphans: true});
