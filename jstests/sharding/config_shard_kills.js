/**
 * A config server that is a shard is killed while it receives a chunk, gives one away, and is being emptied; it is both again at its start.
 * It fails if a document is lost or there twice, a migration or the draining never ends, or the catalog names what is not there.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, configShard: true, other: {chunkSize: 1}});
const admin = st.s.getDB("admin");
const other = st.shard1.shardName;
assert.eq("config", st.shard0.shardName);
assert.eq(["config", other].sort(), st.s.getDB("config").shards.find().toArray().map((shard) => shard._id).sort());
assert.commandWorked(admin.runCommand({enableSharding: "d", primaryShard: "config"}));
const db = st.s.getDB("d");
assert.commandWorked(db.plain.insert({_id: 1}));
assert.commandWorked(admin.runCommand({shardCollection: "d.c", key: {x: 1}}));
assert.commandWorked(admin.runCommand({split: "d.c", middle: {x: 0}}));
const ids = Array.from({length: 200}, (_, i) => i);
assert.commandWorked(db.c.insert(ids.map((i) => ({_id: i, x: i - 100}))));
assert.commandWorked(admin.runCommand({moveChunk: "d.c", find: {x: 1}, to: other, _waitForDelete: true}));

const complete = () => {
    assert.soonNoExcept(() => {
        assert.eq(ids, db.c.find().sort({_id: 1}).toArray().map((d) => d._id));
        return true;
    });
};
const moving = (x, to) => {
    const thread = new Thread(function(host, x, to) {
        const sent = () => new Mongo(host).adminCommand({moveChunk: "d.c", find: {x}, to, _waitForDelete: true});
        try {
            return sent();
        } catch (e) {
            return {ok: 0, errmsg: e.toString()};
        }
    }, st.s.host, x, to);
    thread.start();
    return thread;
};
const ownerOf = (x) => {
    const uuid = st.s.getDB("config").collections.findOne({_id: "d.c"}).uuid;
    return st.s.getDB("config").chunks.find({uuid}).sort({min: 1}).toArray()[x < 0 ? 0 : 1].shard;
};
// x, where it is to go, and who is held up where.
for (const [x, to, point] of [
         [1, "config", "migrateThreadHangAtStep3"], [1, "config", "moveChunkHangAtStep4"],
         [-1, other, "moveChunkHangAtStep3"], [-1, other, "moveChunkHangAtStep5"], [-1, other, "hangBeforeMakingCommitDecisionDurable"],
]) {
    const held = () => point === "moveChunkHangAtStep4" ? st.rs1.getPrimary() : st.config0;
    const hung = configureFailPoint(held(), point);
    const thread = moving(x, to);
    hung.wait();
    st.restartConfigServer(0, undefined, 9);
    assert.commandWorked(held().adminCommand({configureFailPoint: point, mode: "off"}));
    thread.returnData();
    complete();
    assert.soonNoExcept(() => admin.runCommand({moveChunk: "d.c", find: {x}, to, _waitForDelete: true}).ok === 1, point, 60000);
    assert.eq(to, ownerOf(x), point);
    complete();
    const back = x > 0 ? other : "config";
    assert.soonNoExcept(() => admin.runCommand({moveChunk: "d.c", find: {x}, to: back, _waitForDelete: true}).ok === 1, point, 60000);
}
assert.commandWorked(db.c.insert({_id: 200, x: 0.5}));
ids.push(200);

// Killed while it is being emptied.
const to = () => assert.commandWorked(admin.runCommand({transitionToDedicatedConfigServer: 1}));
assert.eq("started", to().state);
st.restartConfigServer(0, {setParameter: {orphanCleanupDelaySecs: 0}}, 9);
assert.soonNoExcept(() => to().state === "ongoing");
assert.commandWorked(admin.runCommand({moveChunk: "d.c", find: {x: -1}, to: other, _waitForDelete: true}));
assert.commandWorked(admin.runCommand({movePrimary: "d", to: other}));
st.restartConfigServer(0, undefined, 9);
assert.soonNoExcept(() => to().state === "completed", "it stays a shard", 60000);
st.restartConfigServer(0, undefined, 9);
complete();
assert.eq(1, db.plain.find().itcount());
assert.eq([other], st.s.getDB("config").shards.find().toArray().map((shard) => shard._id));
assert.eq([], st.config0.getDBNames().filter((name) => !["admin", "config", "local"].includes(name)));
assert.eq([], db.runCommand({checkMetadataConsistency: 1}).cursor.firstBatch);
st.stop();
