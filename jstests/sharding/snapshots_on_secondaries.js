/**
 * What secondaries know of placement is void when a cluster is put back, and a primary that takes over meanwhile goes on with it.
 * It fails if a secondary filters what was put back by what its shard owned before, or if a new primary lets clients go on in the middle.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2, rs: {nodes: 2}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const db = st.s.getDB("d");
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: "d.c", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "d.c", middle: {x: 0}}));
const move = (to) => assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: 0}, max: {x: MaxKey}, toShard: to, waitForDelete: true}));
move(second);
const majority = {writeConcern: {w: "majority"}};
assert.commandWorked(db.c.insert([...Array(20).keys()].map((i) => ({_id: i, x: i - 10})), majority));
assert.commandWorked(st.s.adminCommand({tesseraSnapshot: "s"}));
const read = (router) => router.getCollection("d.c").find().readPref("secondary").readConcern("local").sort({_id: 1}).toArray().map((d) => d._id);
const base = [...Array(20).keys()];
const all = () => [st.s, st.s1].map(read);

for (let round = 0; round < 3; round++) {
    move(first);
    assert.commandWorked(db.c.remove({_id: {$gte: 15}}, majority));
    assert.soon(() => friendlyEqual([base.slice(0, 15), base.slice(0, 15)], all()));
    if (round === 0) {
        assert.commandWorked(st.s.adminCommand({tesseraRestore: "s"}));
    } else {
        // The primary of a shard steps down after its part, before the end.
        const victim = [st.rs0, st.rs1][round - 1];
        const point = configureFailPoint(st.configRS.getPrimary(), "hangStandstillBefore_end");
        const restoring = new Thread((host) => new Mongo(host).adminCommand({tesseraRestore: "s"}), st.s.host);
        restoring.start();
        point.wait();
        const [old, next] = [victim.getPrimary(), victim.getSecondary()];
        assert.soonNoExcept(() => next.adminCommand({replSetStepUp: 1}).ok === 1);
        assert.soonNoExcept(() => next.adminCommand({hello: 1}).isWritablePrimary);
        const early = st.s1.getDB("d").runCommand({find: "c", maxTimeMS: 300});
        assert.commandFailedWithCode(early, ErrorCodes.MaxTimeMSExpired);
        point.off();
        restoring.join();
        assert.commandWorked(restoring.returnData());
        assert.neq(old.host, victim.getPrimary().host);
    }
    assert.commandWorked(st.s1.getCollection("d.c").insert({_id: 100 + round, x: 100}, majority));
    assert.commandWorked(st.s1.getCollection("d.c").remove({x: 100}, majority));
    assert.soon(() => friendlyEqual([base, base], all()), () => tojson(all()));
    assert.eq(20, db.c.find().itcount());
    assert.eq([], assert.commandWorked(db.runCommand({checkMetadataConsistency: 1})).cursor.firstBatch);
}
st.stop();
