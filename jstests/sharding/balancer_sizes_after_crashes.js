/**
 * The sizes by which shards are balanced are those of the documents they own: neither orphans nor a range that arrives count,
 * after a crash as before it.
 * It fails if a size is that of all documents, or a restarted shard takes what it does not own for its own.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, other: {rsOptions: {setParameter: {orphanCleanupDelaySecs: 900}}}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const config = st.s.getDB("config");
assert.commandWorked(st.s.adminCommand({balancerStop: 1}));
assert.commandWorked(st.s.adminCommand({enableSharding: "o", primaryShard: first}));

function size(rs, ns) {
    const collections = [{ns: ns, UUID: config.collections.findOne({_id: ns}).uuid}];
    const command = {_shardsvrGetStatsForBalancing: 1, collections: collections, scaleFactor: 1};
    return Number(assert.commandWorked(rs.getPrimary().adminCommand(command)).stats[0].collSize);
}
const sizes = (ns) => [st.rs0, st.rs1].map((rs) => size(rs, ns));
const held = (rs, ns) => rs.getPrimary().getCollection(ns).find().itcount();
function restart(rs) {
    rs.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    rs.start(0, {}, true);
    rs.awaitNodesAgreeOnPrimary();
}
/** Twenty small documents below zero and twenty large ones from there on, all on the first shard; returns their sizes. */
function filled(ns) {
    assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
    const documents = Array.from({length: 40}, (_, i) => ({_id: i, x: i - 20, pad: "p".repeat(i < 20 ? 10 : 1000)}));
    assert.commandWorked(st.s.getCollection(ns).insert(documents, {writeConcern: {w: "majority"}}));
    const bytes = (some) => some.reduce((sum, d) => sum + Object.bsonsize(d), 0);
    return [bytes(documents.slice(0, 20)), bytes(documents.slice(20))];
}
const move = (ns) => ({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second});

// What was moved away stays for a quarter of an hour, and does not count.
const owned = filled("o.left");
assert.eq([owned[0] + owned[1], 0], sizes("o.left"));
assert.commandWorked(st.s.adminCommand(move("o.left")));
assert.eq(owned, sizes("o.left"));
restart(st.rs0);
assert.eq([owned, 40], [sizes("o.left"), held(st.rs0, "o.left")]);

// What arrives does not count either, nor what is left of it when the recipient dies.
const all = filled("o.arriving").reduce((a, b) => a + b);
const point = configureFailPoint(st.rs1.getPrimary(), "migrateThreadHangAtStep4");
const moving = inBackground(st.s.getDB("admin"), move("o.arriving"));
point.wait();
assert.eq([[all, 0], 20], [sizes("o.arriving"), held(st.rs1, "o.arriving")]);
restart(st.rs1);
assert.eq([all, 0], sizes("o.arriving"));
assert.commandFailed(moving.returnData());
assert.eq([all, 0], sizes("o.arriving"));
TestData.skipCheckOrphans = true;
st.stop();
