/**
 * A defragmentation beside changes of what it is of: its collection is dropped and another takes the name while a merge is under
 * way, and a shard goes and comes back under its name while a phase goes on.
 * It fails if what was asked of the old collection touches the new one, the new one is taken for defragmented, or chunks are
 * looked for on the wrong shard once the shards have other places in their order.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, ownCluster, quickRounds, shardByRanges} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("d", {shards: 3});
const third = st.shard2.shardName;
const configPrimary = st.configRS.getPrimary();
const set = (parameters) => assert.commandWorked(configPrimary.adminCommand(Object.assign({setParameter: 1}, parameters)));
const HOUR = 3600 * 1000;
for (const shard of [st.shard0, st.shard1, st.shard2]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
assert.commandWorked(config.settings.update({_id: "automerge"}, {$set: {enabled: false}}, {upsert: true}));
assert.commandWorked(admin.runCommand({movePrimary: "d", to: second}));
const point = quickRounds(configPrimary);
const entry = (coll) => config.collections.findOne({_id: coll.getFullName()});
const defragment = (coll) => assert.commandWorked(
    admin.runCommand({configureCollectionBalancing: coll.getFullName(), defragmentCollection: true}));
const ended = (coll) => assert.soon(() => !("defragmentCollection" in entry(coll)), () => tojson(chunksOf(coll)), 90 * 1000);
const points = [{x: 0}, {x: 10}, {x: 20}, {x: 30}];
const owners = [second, second, third, third, second];
const fill = (coll) => {
    shardByRanges(coll, {x: 1}, points, owners);
    assert.commandWorked(coll.insert([-1, 1, 11, 21, 31].map((x) => ({x: x}))));
};

// A merge is asked for, and waits on its shard; meanwhile another collection takes the name.
fill(testDB.c);
set({chunkDefragmentationThrottlingMS: 0});
const held = configureFailPoint(st.shard1, "failCommand", {
    failCommands: ["_shardsvrMergeChunks"], failInternalCommands: true, blockConnection: true, blockTimeMS: 3000,
});
defragment(testDB.c);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
held.wait();
assert(testDB.c.drop());
fill(testDB.c);
const made = chunksOf(testDB.c);
const merging = () => st.shard1.getDB("admin").aggregate(
    [{$currentOp: {allUsers: true}}, {$match: {"command._shardsvrMergeChunks": {$exists: true}}}]).itcount();
assert.soon(() => merging() === 0);
held.off();
afterRounds(admin, 5);
assert.eq(made, chunksOf(testDB.c));
assert(!("defragmentCollection" in entry(testDB.c)) && !("defragmentationPhase" in entry(testDB.c)), tojson(entry(testDB.c)));
assert.eq(5, testDB.c.find().itcount());
defragment(testDB.c);
ended(testDB.c);
assert.eq(1, chunksOf(testDB.c).length, tojson(chunksOf(testDB.c)));
assert.eq(5, testDB.c.find().itcount());

// The first shard in their order goes in the middle of a phase, and comes back in the next.
fill(testDB.e);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
set({chunkDefragmentationThrottlingMS: HOUR});
defragment(testDB.e);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => "defragmentationPhase" in entry(testDB.e));
let state;
assert.soon(() => (state = assert.commandWorked(admin.runCommand({removeShard: first}))).state === "completed", () => tojson(state));
afterRounds(admin, 3);
set({chunkDefragmentationThrottlingMS: 200});
assert.soon(() => entry(testDB.e).defragmentationPhase !== "mergeAndMeasureChunks", () => tojson(entry(testDB.e)));
assert.commandWorked(admin.runCommand({addShard: st.rs0.getURL(), name: first}));
ended(testDB.e);
assert.eq(1, chunksOf(testDB.e).length, tojson(chunksOf(testDB.e)));
assert.eq(5, testDB.e.find().itcount());
assert.eq(0, config.migrations.find().itcount());

// It receives again.
assert.commandWorked(admin.runCommand({addShardToZone: first, zone: "back"}));
assert.commandWorked(admin.runCommand({updateZoneKeyRange: "d.e", min: {x: MinKey}, max: {x: MaxKey}, zone: "back"}));
assert.soon(() => chunksOf(testDB.e).every((c) => c.shard === first), () => tojson(chunksOf(testDB.e)));
assert.eq(5, testDB.e.find().itcount());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
