/**
 * The options of a ShardingTest may be given in each of the forms that tests use, and reach the nodes they are meant for.
 * It fails if an option of one node reaches another, is overwritten by a default, or if a set gets fewer members than asked for.
 *
 * @tags: [requires_own_servers]
 */
const parameter = (conn, name) => assert.commandWorked(conn.adminCommand({ getParameter: 1, [name]: 1 }))[name];

const st = new ShardingTest({
    shards: { rs0: { setParameter: { syncdelay: 10 } }, rs1: {} },
    mongos: [{ setParameter: { logLevel: 1 } }],
    config: 1,
    rs: { nodes: 1, setParameter: { ttlMonitorSleepSecs: 9 } },
    other: {
        chunkSize: 1,
        enableBalancer: true,
        mongosOptions: { setParameter: { userCacheInvalidationIntervalSecs: 11, logLevel: 0 } },
        configOptions: { setParameter: { syncdelay: 12 } },
        rsOptions: { setParameter: { syncdelay: 13, orphanCleanupDelaySecs: 4 } },
    },
});
assert.eq(10, parameter(st.rs0.getPrimary(), "syncdelay"), "one shard's own option");
assert.eq(13, parameter(st.rs1.getPrimary(), "syncdelay"), "the option of all shards");
assert.eq([9, 9], [st.rs0, st.rs1].map((rs) => parameter(rs.getPrimary(), "ttlMonitorSleepSecs")));
assert.eq(12, parameter(st.c0, "syncdelay"));
assert.eq(4, parameter(st.rs1.getPrimary(), "orphanCleanupDelaySecs"), "a test's word against a default");
assert.eq(1, parameter(st.s, "logLevel"));
assert.eq(1, st.config.settings.findOne({ _id: "chunksize" }).value);
assert.eq(true, st.isBalancerEnabled());
st.stop();

const manual = new ShardingTest({ shards: [{}, {}], mongos: { s0: {} }, manualAddShard: true });
assert.eq(0, manual.config.shards.find().itcount());
assert.commandWorked(manual.s.adminCommand({ addShard: manual.rs1.getURL(), name: "chosen" }));
assert.eq(["chosen"], manual.config.shards.find().toArray().map((s) => s._id));
manual.stop();

// By position, as the oldest tests do.
const old = new ShardingTest("positional", 1, 0, 1, { chunkSize: 2 });
assert.eq("positional-rs0", old.shard0.shardName);
assert.eq(2, old.config.settings.findOne({ _id: "chunksize" }).value);
old.stop();

const pair = new ShardingTest({ shards: 1, rs: { nodes: 2 } });
assert.eq(2, pair.rs0.nodes.length);
pair.stop();
assert.throws(() => new ShardingTest({ shards: 1, keyFile: "key" }));
assert.eq([], MongoRunner.runningChildPids(), "a cluster that cannot be started leaves nothing behind");
