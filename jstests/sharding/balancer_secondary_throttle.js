/**
 * `_secondaryThrottle` of the balancer's settings has a recipient wait for its secondaries after each batch that it copies.
 * It fails if the recipient copies on while a secondary that the concern asks for applies nothing, if it then waits for ever,
 * or if it waits without the setting.
 *
 * @tags: [requires_own_servers]
 */
import {ownCluster, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, second, admin, config, testDB} =
    ownCluster("s", {shards: {rs0: {nodes: 1}, rs1: {nodes: 3}}, mongos: 1, config: 1, other: {chunkSize: 1}});
const point = quickRounds(st.configRS.getPrimary());
const recipient = st.rs1.getPrimary();
const secondary = st.rs1.getSecondaries()[0];
assert.commandWorked(recipient.adminCommand({setParameter: 1, migrateCloneInsertionBatchSize: 1}));
const arrived = (name) => recipient.getDB("s")[name].find().itcount();
const owned = (name) => config.chunks.countDocuments(
    {uuid: config.collections.findOne({_id: "s." + name}).uuid, shard: second});
const set = (fields) => assert.commandWorked(config.settings.update({_id: "balancer"}, {$set: fields}, {upsert: true}));
const pad = "p".repeat(64 * 1024);
const uneven = (name) => {
    assert.commandWorked(admin.runCommand({shardCollection: "s." + name, key: {_id: 1}}));
    assert.commandWorked(testDB[name].insert(Array.from({length: 100}, (_, i) => ({_id: i, pad: pad}))));
};
const paused = (mode) => assert.commandWorked(secondary.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: mode}));

uneven("c");
set({_secondaryThrottle: {w: 3}});
// The collection is there before the copying begins; the third member is to miss the first document.
assert.commandWorked(admin.runCommand({split: "s.c", middle: {_id: 99}}));
assert.commandWorked(admin.runCommand({moveChunk: "s.c", find: {_id: 99}, to: second, _waitForDelete: true}));
st.rs1.awaitReplication();
assert.eq(1, arrived("c"));
paused("alwaysOn");
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => arrived("c") > 1);
sleep(1000);
assert.eq(2, arrived("c"));
assert.eq(1, owned("c"));
paused("off");
assert.soon(() => owned("c") > 1, "the migration never ended", 120 * 1000);
assert.commandWorked(admin.runCommand({balancerStop: 1}));

// Without the setting a majority is enough.
set({_secondaryThrottle: false});
uneven("d");
paused("alwaysOn");
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => owned("d") > 0, "the migration waited for every member", 120 * 1000);
paused("off");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.eq(100, testDB.c.find().itcount());
assert.eq(100, testDB.d.find().itcount());
point.off();
TestData.skipCheckOrphans = true;
st.stop();
