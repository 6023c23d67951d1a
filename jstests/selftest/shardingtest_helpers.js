/**
 * A ShardingTest has the helpers of `sh` for its own router, whatever `db` is, and restarts all its config servers or shards.
 * It fails if a helper goes to `db`, or if connections still lead to processes that ended.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";

const st = new ShardingTest({ shards: 2, mongos: 1 });
const names = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.enableSharding("test", names[0]));
assert.eq(names[0], st.s.getDB("test").getDatabasePrimaryShardId());
assert.eq(names[0], st.getPrimaryShardIdForDatabase("test"));
assert.throws(() => st.getPrimaryShardIdForDatabase("absent"));
assert.commandWorked(st.shardCollection("test.c", { _id: 1 }));
assert.commandWorked(st.splitAt("test.c", { _id: 0 }));
assert.commandWorked(st.moveChunk("test.c", { _id: 0 }, names[1]));
assert.eq({ [names[0]]: 1, [names[1]]: 1 }, st.chunkCounts("c"));
assert.throws(() => st.moveChunk("test.c", { _id: 0 }, "no such shard"));

const coll = st.s.getDB("test").c;
assert.commandWorked(coll.insert([{ _id: -1 }, { _id: 1 }], { writeConcern: { w: "majority" } }));
const entry = () => st.config.collections.findOne({ _id: "test.c" });
assert.commandWorked(coll.disableAutoMerger());
assert.eq(false, entry().enableAutoMerge);
assert.commandWorked(coll.enableAutoMerger());
assert.neq(false, entry().enableAutoMerge);

assert.eq(st.rs0.getPrimary().host, st.d0.host);
assert.eq(1, st.d1.getDB("test").c.find().itcount());
const pids = () => [st.c0.pid, st.d0.pid, st.d1.pid];
const before = pids();
const everything = () => coll.find().sort({ _id: 1 }).toArray().map((document) => document._id);
st.restartAllShards();
st.restartAllConfigServers();
pids().forEach((pid, i) => assert.neq(before[i], pid));
assert.eq([-1, 1], everything());
assert.eq(1, st.d1.getDB("test").c.find().itcount());
assert.eq(1, st.shard1.getDB("test").c.find().itcount());
st.stopAllConfigServers({}, true);
st.startConfigServers();
assert.commandWorked(st.moveChunk("test.c", { _id: 0 }, names[0]));
assert.eq([-1, 1], everything());

// `sh` itself is a person's, who is connected to the router by `db`.
globalThis.db = st.s.getDB("test");
assert.commandWorked(db.many.insert(Array.from({ length: 20 }, (_, _id) => ({ _id, padding: "x".repeat(1000) }))));
assert.commandWorked(db.many.createIndex({ _id: "hashed" }));
sh.shardAndDistributeCollection("test.many", { _id: "hashed" }, false, { numInitialChunks: 4 });
assert.eq(2, st.onNumShards("many"));
assert.eq(20, db.many.find().itcount());
st.stop();
