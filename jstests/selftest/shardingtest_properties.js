/**
 * A ShardingTest has the names that tests know for its routers, shards, sets and config servers, and they lead where they say.
 * It fails if a name leads to another node, or if a shard is not in the cluster under the name that its connection carries.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";

const begun = Date.now();
const st = new ShardingTest({ name: "properties", shards: 2, mongos: 2 });
print(`two shards and two routers took ${Date.now() - begun} ms`);

const role = (conn) => conn.adminCommand({ hello: 1 });
assert.eq(st.s, st.s0);
assert.eq(2, st._mongos.length);
assert(st.s0.port !== st.s1.port);
[st.s0, st.s1].forEach((conn) => assert.eq("isdbgrid", role(conn).msg));
assert.eq("properties-rs0", role(st.shard0).setName);
assert.eq("properties-rs1", role(st.rs1.getPrimary()).setName);
assert.eq("properties-configRS", role(st.c0).setName);
assert.eq(st.config0, st.c0);
assert.eq(st.configRS.getPrimary(), st.c0);
assert.eq(["properties-rs0", "properties-rs1"], st._connections.map((conn) => conn.shardName));
assert.eq(["properties-rs0", "properties-rs1"], st.config.shards.find().sort({ _id: 1 }).toArray().map((s) => s._id));
assert.eq(st.rs0.getURL(), st.shard0.host);
assert.eq(st.rs0.getURL(), st._rs[0].url);
assert.eq(st.rs0, st._rs[0].test);
assert.eq(st.rs0, st.shard0.rs);
assert.eq("config", st.config.getName());

// Where databases and collections are.
assert.commandWorked(st.s.adminCommand({ enableSharding: "d", primaryShard: st.shard1.shardName }));
assert.eq(st.shard1.shardName, st.getPrimaryShardIdForDatabase("d"));
assert.eq(st.shard1, st.getPrimaryShard("d"));
assert.eq(st.shard1, st.getServer("d"));
assert.eq(st.shard1.host, st.getServerName("d"));
assert.eq([st.shard0.shardName], st.getNonPrimaries("d"));
assert.eq(st.shard0, st.getOther(st.shard1));
assert.eq(st.shard0, st.getOther(st.getPrimaryShard("d")));
assert.eq(st.shard1, st.getAnother(st.shard0));
assert.eq(st.shard0, st.getAnother(st.shard1));
assert.throws(() => st.getPrimaryShardIdForDatabase("nowhere"));
st.ensurePrimaryShard("d", st.shard0.shardName);
st.ensurePrimaryShard("d", st.shard0.shardName);
assert.eq(st.shard0, st.getPrimaryShard("d"));

assert(st.adminCommand({ ping: 1 }));
assert.throws(() => st.adminCommand({ noSuchCommand: 1 }));
assert.eq("d", st.getDB("d").getName());
assert.eq(false, st.isBalancerEnabled());
assert.eq("off", st.s.adminCommand({ balancerStatus: 1 }).mode);

st.stop();
assert.eq([], MongoRunner.runningChildPids());
