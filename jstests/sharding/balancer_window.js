/**
 * The balancer may be held to a window of the day in the config server's local time, and a collection's own chunk size
 * decides what is even.
 * It fails if rounds move data outside the window, the window is read in another time zone than the config server's, or
 * the collection's size is not the one that counts.
 *
 * @tags: [requires_own_servers]
 */
import {quickRounds} from "jstests/sharding/libs/cluster.js";

// Nine hours east, and eight west, of UTC: no hour of a window means the same in two of the three zones.
for (const [zone, ahead] of [["EAST-9", 9], ["WEST8", -8]]) {
    const st = new ShardingTest({shards: 2, other: {configOptions: {env: {TZ: zone}}}});
    const [first, second] = [st.shard0.shardName, st.shard1.shardName];
    const admin = st.s.getDB("admin");
    const config = st.s.getDB("config");
    const testDB = st.s.getDB("w");
    assert.commandWorked(admin.runCommand({balancerStop: 1}));
    assert.commandWorked(admin.runCommand({enableSharding: "w", primaryShard: first}));
    assert.commandWorked(admin.runCommand({shardCollection: "w.c", key: {_id: 1}}));
    const pad = "p".repeat(64 * 1024);
    for (let i = 0; i < 128; i++) {
        assert.commandWorked(testDB.c.insert({_id: i, pad: pad}));
    }
    const status = () => assert.commandWorked(admin.runCommand({balancerCollectionStatus: "w.c"}));
    assert.eq(true, status().balancerCompliant, "eight megabytes are nothing by the usual size");
    assert.eq(128, Number(status().chunkSize));
    assert.commandWorked(admin.runCommand({configureCollectionBalancing: "w.c", chunkSize: 1}));
    assert.eq(NumberLong(1024 * 1024), config.collections.findOne({_id: "w.c"}).maxChunkSizeBytes);
    assert.eq(1, Number(status().chunkSize));
    assert.eq("chunksImbalance", status().firstComplianceViolation);

    // A window that is over, and one that has not begun.
    const hour = (shift) => {
        const at = new Date(Date.now() + (ahead + shift) * 3600 * 1000);
        return `${String(at.getUTCHours()).padStart(2, "0")}:${String(at.getUTCMinutes()).padStart(2, "0")}`;
    };
    const moves = () => config.changelog.find({what: "moveChunk.commit", ns: "w.c"}).itcount();
    const point = quickRounds(st.configRS.getPrimary());
    const [over, later] = [{start: hour(-3), stop: hour(-2)}, {start: hour(2), stop: hour(3)}];
    for (const window of [over, later]) {
        assert.commandWorked(config.settings.update({_id: "balancer"}, {$set: {activeWindow: window}}, {upsert: true}));
        assert.commandWorked(admin.runCommand({balancerStart: 1}));
        quickRounds(st.configRS.getPrimary(), 5);
        assert.eq(0, moves(), tojson(window));
        assert.eq(false, status().balancerCompliant);
        assert.commandWorked(admin.runCommand({balancerStop: 1}));
    }
    assert.docEq(later, config.settings.findOne({_id: "balancer"}).activeWindow);

    // Now.
    assert.commandWorked(config.settings.update({_id: "balancer"}, {$set: {activeWindow: {start: hour(-1), stop: hour(1)}}}));
    assert.commandWorked(admin.runCommand({balancerStart: 1}));
    assert.soon(() => moves() > 0, "nothing was moved within the window", 60 * 1000);
    assert.soon(() => status().balancerCompliant, () => tojson(status()), 60 * 1000);
    assert.commandWorked(admin.runCommand({balancerStop: 1}));
    point.off();
    assert.eq(128, testDB.c.find().itcount());
    assert.gt(config.chunks.find({uuid: config.collections.findOne({_id: "w.c"}).uuid, shard: second}).itcount(), 0);

    // Errors of the collection's settings.
    assert.commandFailedWithCode(admin.runCommand({configureCollectionBalancing: "w.absent", chunkSize: 1}), [26, 118]);
    assert.commandFailedWithCode(admin.runCommand({configureCollectionBalancing: "w.c", unknownField: 1}), 40415);
    assert.commandWorked(admin.runCommand({configureCollectionBalancing: "w.c", chunkSize: 0}));
    assert(!("maxChunkSizeBytes" in config.collections.findOne({_id: "w.c"})));
    st.stop();
}
