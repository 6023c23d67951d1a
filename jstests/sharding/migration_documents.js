/**
 * Donor and recipient write down what they are about to do before they do it, so that a restart can go on from there.
 * It fails if a document of the protocol is missing, lacks a field, or stays after the migration.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    collectionEntry,
    dropWithRemains,
    freshCollection,
    inBackground,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_documents", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -5; x < 5; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
const donor = shardConnection(db, first).getDB("config");
const recipient = shardConnection(db, second).getDB("config");
const chunk = chunksOf(coll)[1];
const range = {min: {x: 0}, max: {x: MaxKey}};
const entry = collectionEntry(coll);
let id;

const command = Object.assign({moveRange: ns, toShard: second}, range);
let move;
whileHung(donor.getMongo(), "moveChunkHangAtStep4", (point) => {
    move = inBackground(db, command);
    point.wait();

    const coordinator = donor.migrationCoordinators.findOne({nss: ns});
    assert(coordinator);
    id = coordinator._id;
    assert.eq(range, coordinator.range);
    assert.eq(entry.uuid, coordinator.collectionUuid);
    assert.eq([first, second], [coordinator.donorShardId, coordinator.recipientShardId]);
    assert(coordinator.migrationSessionId.startsWith(`${first}_${second}_`), tojson(coordinator));
    assert(coordinator.lsid.id, tojson(coordinator));
    assert(coordinator.txnNumber instanceof NumberLong, tojson(coordinator));
    assert.eq(chunk.lastmod, coordinator.preMigrationChunkVersion.v);
    assert(!("decision" in coordinator), tojson(coordinator));

    // Both sides prepare the deletion of what one of them will have to delete.
    for (const side of [donor, recipient]) {
        const task = side.rangeDeletions.findOne({_id: id});
        assert(task, tojson(side.rangeDeletions.find().toArray()));
        assert.eq(true, task.pending);
        assert.eq(range, task.range);
        assert.eq(ns, task.nss);
        assert.eq(first, task.donorShardId);
    }
});
assert.commandWorked(move.returnData());

assert.soon(() => donor.migrationCoordinators.find({_id: id}).itcount() === 0);
assert.soon(() => recipient.rangeDeletions.find({_id: id}).itcount() === 0);
const task = donor.rangeDeletions.findOne({_id: id});
if (task) {
    assert(!("pending" in task), tojson(task));
}

// The decision, before it has been carried out.
whileHung(donor.getMongo(), "hangBeforeMakingCommitDecisionDurable", (point) => {
    move = inBackground(db, {moveRange: ns, min: {x: MinKey}, max: {x: 0}, toShard: second});
    point.wait();
    const coordinator = donor.migrationCoordinators.findOne({nss: ns});
    assert(coordinator && !("decision" in coordinator), tojson(coordinator));
    assert.eq(second, chunksOf(coll)[0].shard, "the config server has committed it already");
});
assert.commandWorked(move.returnData());
assert.soon(() => donor.migrationCoordinators.find({nss: ns}).itcount() === 0);

// What config.chunks says of a chunk's past.
const moved = chunksOf(coll)[0];
assert.eq(second, moved.history[0].shard);
assert.eq(first, moved.history[1].shard);
assert.eq(moved.onCurrentShardSince, moved.history[0].validAfter);
assert.gt(bsonWoCompare({t: moved.history[0].validAfter}, {t: moved.history[1].validAfter}), 0);
dropWithRemains(testDB);
