/**
 * stop() leaves out the checks that a test's flags leave out, says so when nodes are missing, and ends all processes.
 * It fails if a check runs against its flag, or if a process is left.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";

const orphan = (st) => {
    assert.commandWorked(st.s.adminCommand({ enableSharding: "test", primaryShard: st.shard0.shardName }));
    st.shardColl(st.s.getDB("test").c, { x: 1 }, false);
    assert.commandWorked(st.rs1.getPrimary().getDB("test").runCommand({ create: "c" }));
};
const flagged = new ShardingTest({ shards: 2 });
orphan(flagged);
assert.commandWorked(flagged.rs1.getPrimary().getDB("test").c.insert({ x: 1 }));
for (const name of ["skipCheckingUUIDsConsistentAcrossCluster", "skipCheckMetadataConsistency", "skipCheckOrphans"]) TestData[name] = true;
flagged.stop();
for (const name of ["skipCheckingUUIDsConsistentAcrossCluster", "skipCheckMetadataConsistency", "skipCheckOrphans"]) delete TestData[name];

const halved = new ShardingTest({ shards: 2 });
halved.rs1.stop(0);
halved.stop();

const killed = new ShardingTest({ shards: 1 });
killed.rs0.kill(0);
killed.stop({ skipChecks: true });
assert.eq([], MongoRunner.runningChildPids());
