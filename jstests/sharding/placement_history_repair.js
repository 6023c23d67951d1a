/**
 * An operator can let the history of chunks and of placements begin anew.
 * It fails if a history that is broken stays so, a sound one is changed without being asked, or an entry of what is there lacks.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, configConnection, freshCollection, pauseBalancer, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const resume = pauseBalancer(db);
const coll = freshCollection(db, "placement_history_repair", {x: 1}, [{x: 0}], [first, second]);
const ns = coll.getFullName();
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
const config = configConnection(db).getDB("config");
const repair = (more) => db.adminCommand(Object.assign({repairShardedCollectionChunksHistory: ns}, more));

// Sound histories stay.
const before = chunksOf(coll);
assert.commandWorked(repair());
assert.eq(before.map((c) => c.history), chunksOf(coll).map((c) => c.history));
// A broken one is mended, alone.
assert.commandWorked(config.chunks.updateOne({_id: before[0]._id}, {$unset: {history: 1}}));
assert.eq(["CorruptedChunkHistory"], coll.getDB().checkMetadataConsistency().toArray().map((f) => f.type));
assert.commandWorked(repair());
assert.eq([], coll.getDB().checkMetadataConsistency().toArray());
let after = chunksOf(coll);
assert.eq([first], after[0].history.map((h) => h.shard));
assert.gt(after[0].onCurrentShardSince, before[0].onCurrentShardSince);
assert.eq(before[1].history, after[1].history);
assert.eq(2, coll.find().itcount());
// By force all of them are.
assert.commandWorked(repair({force: true}));
after = chunksOf(coll);
assert(after.every((c) => c.history.length === 1));
assert.gt(after[1].onCurrentShardSince, before[1].onCurrentShardSince);
assert.commandFailedWithCode(db.adminCommand({repairShardedCollectionChunksHistory: "placement_history_repair.none"}), 118);
assert.commandFailedWithCode(repair({force: "yes"}), 14);

// The history of placements begins with what is there.
assert.commandWorked(db.adminCommand({resetPlacementHistory: 1}));
const entries = config.placementHistory.find({nss: ns}).toArray();
assert.eq([[first, second]], entries.map((e) => e.shards.sort()));
assert.eq(1, config.placementHistory.countDocuments({nss: "placement_history_repair"}));
assert.eq(2, config.placementHistory.countDocuments({nss: ""}));
assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: first, waitForDelete: true}));
assert.eq(2, config.placementHistory.countDocuments({nss: ns}));
assert.commandWorked(coll.getDB().dropDatabase());
resume();
