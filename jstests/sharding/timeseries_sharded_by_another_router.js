/**
 * A router that has known a time series as unsharded changes it after another router has sharded it: its indexes, its options, and what
 * it lists are those of the buckets on all shards.
 * It fails if the router asks again and again for what is there no more, until the request is refused.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 1, mongos: 2});
assert.commandWorked(st.s0.adminCommand({enableSharding: "series", primaryShard: st.shard0.shardName}));
const stale = st.s1.getDB("series");
const series = {timeField: "t", metaField: "m"};
const changes = {
    createIndexes: (name) => ({createIndexes: name, indexes: [{key: {v: 1}, name: "v"}]}),
    dropIndexes: (name) => ({dropIndexes: name, index: "w"}),
    collMod: (name) => ({collMod: name, expireAfterSeconds: 1000000000}),
    listIndexes: (name) => ({listIndexes: name}),
    collStats: (name) => ({collStats: name}),
};
const names = Object.keys(changes);
for (const name of names) {
    assert.commandWorked(stale.createCollection(name, {timeseries: series}));
    assert.commandWorked(stale[name].createIndex({w: 1}, {name: "w"}));
    assert.commandWorked(stale[name].insert({t: new Date(), m: 1}));
    assert.eq(1, stale[name].find().itcount());
}
for (const name of names) {
    assert.commandWorked(st.s0.adminCommand({shardCollection: `series.${name}`, key: {m: 1}}));
}
for (const name of names) {
    assert.commandWorked(stale.runCommand(changes[name](name)), name);
}
const indexes = (name) => st.s0.getDB("series")[name].getIndexes().map((spec) => spec.name).sort();
assert.eq(["m_1_t_1", "v", "w"], indexes("createIndexes"));
assert.eq(["m_1_t_1"], indexes("dropIndexes"));
assert.eq(1000000000, Number(st.s0.getDB("series").getCollectionInfos({name: "collMod"})[0].options.expireAfterSeconds));
assert.commandFailedWithCode(stale.runCommand({create: "collMod", timeseries: series}), 48);
st.stop();
