/**
 * Each node of a cluster can be stopped, killed and restarted, and the cluster goes on with the data it had.
 * It fails if a restart loses data or options, or if the connections of the ShardingTest still lead to the node that ended.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";

const st = new ShardingTest({ shards: 2, mongos: 1, other: { mongosOptions: { setParameter: { logLevel: 1 } } } });
assert.commandWorked(st.s.adminCommand({ enableSharding: "test", primaryShard: st.shard0.shardName }));
st.shardColl(st.s.getDB("test").c, { _id: 1 }, { _id: 0 }, { _id: 0 });
assert.commandWorked(st.s.getDB("test").c.insert([{ _id: -1 }, { _id: 1 }], { writeConcern: { w: "majority" } }));
const everything = () => st.s.getDB("test").c.find().sort({ _id: 1 }).toArray().map((doc) => doc._id);
assert.eq([-1, 1], everything());

const router = st.s.pid;
st.restartMongos(0);
assert.neq(router, st.s.pid);
assert.eq(st.s0, st.s);
assert.eq([-1, 1], everything());
assert.eq(1, st.s.adminCommand({ getParameter: 1, logLevel: 1 }).logLevel, "options hold over a restart");
assert.eq("config", st.config.getName());

st.restartShardRS(1);
assert.eq([-1, 1], everything());
assert.eq(1, st.shard1.getDB("test").c.find().itcount());
st.restartShardRS(0, undefined, 9);
assert.eq([-1, 1], everything());
st.restartConfigServer(0);
assert.eq(st.c0, st.configRS.getPrimary());
assert.commandWorked(st.s.adminCommand({ moveChunk: "test.c", find: { _id: 1 }, to: st.shard0.shardName }));
assert.eq([-1, 1], everything());

st.killMongos(0);
st.restartMongos(0);
assert.eq([-1, 1], everything());

st.rs1.stop(0);
assert.throws(() => st.shard1.getDB("test").c.find().itcount());
st.rs1.start(0, {}, true);
st.rs1.getPrimary();
assert.eq([-1, 1], everything());
st.stop();
