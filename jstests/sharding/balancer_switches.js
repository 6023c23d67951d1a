/**
 * The balancer's settings: in the mode autoSplitOnly chunks are split as they grow and nothing is moved; `_waitForDelete` has a
 * migration wait until the donor has deleted the range; `_secondaryThrottle` is handed to the migrations.
 * It fails if a setting is not read, or the balancer moves data in a mode that forbids it.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, ownCluster, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("s", {other: {chunkSize: 1}});
const configPrimary = st.configRS.getPrimary();
const point = quickRounds(configPrimary);
const afterTicks = () => quickRounds(configPrimary, 3);
const set = (fields) => assert.commandWorked(config.settings.update({_id: "balancer"}, {$set: fields}, {upsert: true}));
const moves = () => config.changelog.find({what: "moveChunk.commit"}).itcount();
const pad = "p".repeat(16 * 1024);
const fill = (coll, documents) => {
    for (let i = 0; i < documents; i++) {
        assert.commandWorked(coll.insert({_id: i, pad: pad}));
    }
};
// Ranges would stay for long.
for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 900}));
}
const waiting = () => st.shard0.getDB("config").rangeDeletions.find().itcount();

// Splitting only.
assert.commandWorked(admin.runCommand({shardCollection: "s.c", key: {_id: 1}}));
assert.commandWorked(config.settings.update({_id: "autosplit"}, {$set: {enabled: true}}, {upsert: true}));
set({mode: "autoSplitOnly", stopped: false});
assert.eq("autoSplitOnly", assert.commandWorked(admin.runCommand({balancerStatus: 1})).mode);
afterTicks();
fill(testDB.c, 500);
assert.soon(() => chunksOf(testDB.c).length >= 4, () => tojson(chunksOf(testDB.c)));
afterTicks();
assert.eq(0, moves());
assert.eq(false, assert.commandWorked(admin.runCommand({balancerCollectionStatus: "s.c"})).balancerCompliant);
assert.commandWorked(config.settings.update({_id: "autosplit"}, {$set: {enabled: false}}));

// A migration that waits leaves no range to delete.
set({mode: "full", _waitForDelete: true, _secondaryThrottle: {w: 1}});
assert.soon(() => moves() > 0, "nothing was moved", 60 * 1000);
assert.soon(() => assert.commandWorked(admin.runCommand({balancerCollectionStatus: "s.c"})).balancerCompliant,
            () => tojson(chunksOf(testDB.c)), 120 * 1000);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.eq(0, waiting());
assert.eq(500, testDB.c.find().itcount());

// One that does not wait leaves some.
assert.commandWorked(admin.runCommand({shardCollection: "s.d", key: {_id: 1}}));
fill(testDB.d, 500);
set({_waitForDelete: false});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => waiting() > 0, "no range waits for its deletion", 60 * 1000);

assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
TestData.skipCheckOrphans = true;
st.stop();
