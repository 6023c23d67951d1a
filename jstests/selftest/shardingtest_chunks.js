/**
 * shardColl, chunk counts and the libraries for chunks show a collection as its chunks lie.
 * It fails if shardColl splits or moves otherwise than asked, or if a count is of another collection.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";
import { findChunksUtil } from "jstests/sharding/libs/find_chunks_util.js";
import { chunkBoundsUtil } from "jstests/sharding/libs/chunk_bounds_util.js";
import { CreateShardedCollectionUtil } from "jstests/sharding/libs/create_sharded_collection_util.js";
import { moveChunkParallel, moveChunkStepNames, pauseMoveChunkAtStep, unpauseMoveChunkAtStep, waitForMoveChunkStep } from "jstests/libs/chunk_manipulation_util.js";
import { ShardVersioningUtil } from "jstests/sharding/libs/shard_versioning_util.js";
import { FixtureHelpers } from "jstests/libs/fixture_helpers.js";
import { DiscoverTopology, Topology } from "jstests/libs/discover_topology.js";

const st = new ShardingTest({ shards: 2 });
assert.commandWorked(st.s.adminCommand({ enableSharding: "test", primaryShard: st.shard0.shardName }));
const db = st.s.getDB("test");
globalThis.db = db;

st.shardColl("whole", { x: 1 }, false);
assert.eq({ [st.shard0.shardName]: 1, [st.shard1.shardName]: 0 }, st.chunkCounts("whole"));
st.shardColl("split", { x: 1 }, { x: 0 }, false);
assert.eq({ [st.shard0.shardName]: 2, [st.shard1.shardName]: 0 }, st.chunkCounts("split"));
assert.eq(2, st.chunkDiff("split"));
st.shardColl(db.moved, { x: 1 }, { x: 0 }, { x: 1 });
assert.eq({ [st.shard0.shardName]: 1, [st.shard1.shardName]: 1 }, st.chunkCounts("moved"));
assert.eq(0, st.chunkDiff("moved"));
assert(st.isSharded("test.moved") && !st.isSharded("test.nowhere"));

assert.commandWorked(db.moved.insert([{ x: -1 }, { x: 1 }]));
assert.eq(st.shard0, st.getShard(db.moved, { x: -1 }));
assert.eq(st.shard1, st.getShard(db.moved, { x: 1 }));
assert.eq(2, st.getShards(db.moved).length);
assert.eq([st.shard1], st.getShards(db.moved, { x: 77 }, true), "where it would be");
assert.eq([], st.getShards(db.moved, { x: 77 }));

const ns = "test.moved";
assert.eq(2, findChunksUtil.countChunksForNs(st.config, ns));
assert.eq(st.shard1.shardName, findChunksUtil.findOneChunkByNs(st.config, ns, { min: { x: 0 } }).shard);
const bounds = chunkBoundsUtil.findShardChunkBounds(findChunksUtil.findChunksByNs(st.config, ns).toArray());
assert.eq(st.shard1, chunkBoundsUtil.findShardForShardKey(st, bounds, { x: 5 }));
assert(st.getChunksString(ns).includes(st.shard1.shardName));

const made = CreateShardedCollectionUtil.shardCollectionWithChunks(db.made, { k: 1 }, [
    { min: { k: MinKey }, max: { k: 0 }, shard: st.shard1.shardName },
    { min: { k: 0 }, max: { k: 10 }, shard: st.shard0.shardName },
    { min: { k: 10 }, max: { k: MaxKey }, shard: st.shard1.shardName },
]);
assert.eq({ [st.shard0.shardName]: 1, [st.shard1.shardName]: 2 }, st.chunkCounts("made"));
assert.eq(2, FixtureHelpers.numberOfShardsForCollection(made));
assert(FixtureHelpers.isMongos(db) && FixtureHelpers.isSharded(made) && !FixtureHelpers.isSharded(db.plain));
assert.eq(2, FixtureHelpers.getPrimaries(db).length);

// A migration that is held at a step and let go.
pauseMoveChunkAtStep(st.shard0, moveChunkStepNames.reachedSteadyState);
const join = moveChunkParallel(st.rs0.getPrimary(), st.s0.host, { k: 5 }, null, "test.made", st.shard1.shardName);
waitForMoveChunkStep(st.shard0, moveChunkStepNames.reachedSteadyState);
assert.eq(1, st.chunkCounts("made")[st.shard0.shardName]);
unpauseMoveChunkAtStep(st.shard0, moveChunkStepNames.reachedSteadyState);
join();
assert.eq(0, st.chunkCounts("made")[st.shard0.shardName]);
assert.eq(Timestamp(0, 0), ShardVersioningUtil.getMetadataOnShard(st.shard0, "test.made").shardVersion);

const topology = DiscoverTopology.findConnectedNodes(st.s);
assert.eq(Topology.kShardedCluster, topology.type);
assert.eq(st.rs1.getPrimary().host, topology.shards[st.shard1.shardName].primary);
assert.eq(st.configRS.nodeList(), topology.configsvr.nodes);
st.stop();
