/**
 * The balancer brings each range to a shard of its zone, whatever the sizes are, and splits chunks at a zone's edge.
 * It fails if a violation stays though rounds go on, or data outside of all zones is moved without need.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
db = st.s.getDB("z");
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "z", primaryShard: first}));
assert.commandWorked(admin.runCommand({shardCollection: "z.c", key: {x: 1}}));
const coll = st.s.getDB("z").c;
for (let x = 0; x < 100; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
sh.addShardToZone(second, "hot");
sh.updateZoneKeyRange("z.c", {x: 40}, {x: 60}, "hot");

const chunks = () => config.chunks.find({uuid: config.collections.findOne({_id: "z.c"}).uuid})
                         .sort({min: 1}).toArray().map((c) => [c.min.x, c.shard]);
const compliant = () => assert.commandWorked(admin.runCommand({balancerCollectionStatus: "z.c"})).balancerCompliant;
assert.eq([[MinKey, first]], chunks());
assert.eq(false, compliant());

for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
const point = configureFailPoint(st.configRS.getPrimary(), "overrideBalanceRoundInterval", {intervalMs: 50});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(compliant, () => tojson(chunks()), 60 * 1000);
assert.soonNoExcept(() => tojson(chunks()) === tojson([[MinKey, first], [40, second], [60, first]]), () => tojson(chunks()));
assert.eq(100, coll.find().itcount());
assert.soon(() => st.shard1.getDB("z").c.find().itcount() === 20);

// Another zone, another place.
sh.addShardToZone(first, "cold");
sh.updateZoneKeyRange("z.c", {x: 0}, {x: 10}, "cold");
sh.removeRangeFromZone("z.c", {x: 40}, {x: 60});
sh.updateZoneKeyRange("z.c", {x: 40}, {x: 60}, "cold");
assert.soon(() => compliant() && chunks().every((c) => c[1] === first), () => tojson(chunks()), 60 * 1000);
assert.soon(() => st.shard1.getDB("z").c.find().itcount() === 0);
assert.eq(100, coll.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
