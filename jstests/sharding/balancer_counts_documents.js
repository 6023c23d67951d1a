/**
 * With a policy that counts, a chunk of more documents than a migration takes is split by their number and moved in pieces.
 * It fails if such a chunk is marked as one that cannot be split, or stays where it is.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, quickRounds, shardByRanges} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, other: {chunkSize: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const configPrimary = st.configRS.getPrimary();
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "n", primaryShard: first}));
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, balancerPolicy: "idealChunkCount"}));
const coll = st.s.getDB("n").c;
shardByRanges(coll, {x: 1}, [{x: 0}], [first, first]);

// A hundred large documents below zero, two thousand small ones above: of average ones, fewer than 1700 fit a chunk.
const large = [], small = [];
for (let i = 0; i < 100; i++) {
    large.push({x: -1 - i, pad: "p".repeat(16 * 1024)});
}
for (let i = 0; i < 2000; i++) {
    small.push({x: i});
}
assert.commandWorked(coll.insert(large));
assert.commandWorked(coll.insert(small));
assert.commandWorked(admin.runCommand({addShardToZone: second, zone: "z"}));
assert.commandWorked(admin.runCommand({updateZoneKeyRange: "n.c", min: {x: 0}, max: {x: MaxKey}, zone: "z"}));

const point = quickRounds(configPrimary);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const above = () => chunksOf(coll).filter((c) => bsonWoCompare({v: c.min.x}, {v: 0}) >= 0);
assert.soon(() => above().every((c) => c.shard === second || c.jumbo), () => tojson(chunksOf(coll)));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert(chunksOf(coll).every((c) => !c.jumbo), tojson(chunksOf(coll)));
assert.gt(above().length, 1, tojson(chunksOf(coll)));
assert.eq(2100, coll.find().itcount());
point.off();
st.stop();
