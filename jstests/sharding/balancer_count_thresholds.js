/**
 * With the thresholds by chunk counts, balancing goes on once it has begun until the shards are even, or a migration fails.
 * It fails if it stops as soon as the difference is below the threshold, or goes on after a failure.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, ownCluster, placedChunks, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("n");
const configPrimary = st.configRS.getPrimary();
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, balancerPolicy: "chunkCountThresholds"}));
for (const shard of [st.shard0, st.shard1]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
const point = quickRounds(configPrimary);
// Twenty chunks begin to be moved at a difference of four.
const owners = Array.from({length: 20}, (_, i) => i < 12 ? first : second);
const counts = (coll) => [first, second].map((shard) => chunksOf(coll).filter((c) => c.shard === shard).length);

placedChunks(testDB.even, owners);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => tojson(counts(testDB.even)) === tojson([10, 10]), () => tojson(counts(testDB.even)));
assert.commandWorked(admin.runCommand({balancerStop: 1}));

// The second migration fails: the difference that is left is no reason to begin again.
placedChunks(testDB.failing, owners);
const fails = configureFailPoint(
    st.shard0, "failCommand", {failCommands: ["_shardsvrMoveRange"], failInternalCommands: true, errorCode: 2}, {skip: 1});
const failures = () => config.actionlog.find({what: "balancer.error", ns: "n.failing", "details.step": "migration"}).itcount();
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => failures() > 0, () => tojson(counts(testDB.failing)));
fails.off();
afterRounds(admin, 5);
assert.eq([11, 9], counts(testDB.failing));
assert.eq(1, failures());
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
