/**
 * The balancer evens out sizes between shards by moving ranges, and leaves alone what is even or must not be balanced.
 * It fails if a round moves nothing though shards differ by more than three chunk sizes, or moves what is excluded.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, other: {chunkSize: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(config.settings.update({_id: "chunksize"}, {$set: {value: 1}}, {upsert: true}));
assert.commandWorked(admin.runCommand({enableSharding: "b", primaryShard: first}));
const testDB = st.s.getDB("b");

const pad = "p".repeat(32 * 1024);
function fill(name) {
    assert.commandWorked(admin.runCommand({shardCollection: `b.${name}`, key: {_id: 1}}));
    const bulk = testDB[name].initializeUnorderedBulkOp();
    for (let i = 0; i < 256; i++) {
        bulk.insert({_id: i, pad: pad});
    }
    assert.commandWorked(bulk.execute());
}
fill("uneven");
fill("excluded");
assert.commandWorked(admin.runCommand({shardCollection: "b.small", key: {_id: 1}}));
assert.commandWorked(testDB.small.insert([{_id: 1}, {_id: 2}]));
const sizes = (name) => {
    const shards = testDB[name].stats().shards;
    return [first, second].map((shard) => shards[shard] ? Number(shards[shard].count) : 0);
};
const compliance = (name) => assert.commandWorked(admin.runCommand({balancerCollectionStatus: `b.${name}`}));
assert.eq(false, compliance("uneven").balancerCompliant);
assert.eq("chunksImbalance", compliance("uneven").firstComplianceViolation);
assert.eq(true, compliance("small").balancerCompliant);

// A collection may be taken out of balancing.
sh.disableBalancing(testDB.excluded);
assert.eq(true, config.collections.findOne({_id: "b.excluded"}).noBalance);

for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
const point = configureFailPoint(st.configRS.getPrimary(), "overrideBalanceRoundInterval", {intervalMs: 50});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => compliance("uneven").balancerCompliant, () => tojson(sizes("uneven")), 120 * 1000, 200);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();

const chunks = config.chunks.find({uuid: config.collections.findOne({_id: "b.uneven"}).uuid}).toArray();
assert(chunks.some((c) => c.shard === second), tojson(chunks));
assert.eq(256, testDB.uneven.find().itcount());
const owned = [st.shard0, st.shard1].map((shard) => shard.getDB("b").uneven.find().itcount());
assert.soon(() => {
    const [a, b] = [st.shard0, st.shard1].map((shard) => shard.getDB("b").uneven.find().itcount());
    return a + b === 256 && Math.abs(a - b) * 32 <= 3 * 1024 + 64;
}, () => tojson(owned));

// The others stayed where they were.
for (const name of ["excluded", "small"]) {
    const uuid = config.collections.findOne({_id: `b.${name}`}).uuid;
    assert.eq(0, config.chunks.find({uuid: uuid, shard: second}).itcount(), name);
}
assert.gt(config.changelog.find({what: "moveChunk.commit", ns: "b.uneven"}).itcount(), 0);
const round = config.actionlog.find({what: "balancer.round", "details.chunksMoved": {$gt: 0}}).limit(1).toArray()[0];
assert(round, tojson(config.actionlog.find().toArray()));
assert.eq(false, round.details.errorOccured);
assert.gte(round.details.candidateChunks, round.details.chunksMoved);
assert.gte(round.details.executionTimeMillis, 0);
sh.enableBalancing(testDB.excluded);
assert(!config.collections.findOne({_id: "b.excluded"}).noBalance);
st.stop();
