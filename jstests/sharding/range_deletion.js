/**
 * What a shard has given away stays until a task deletes it: it is written down, filtered from answers, and goes in the end.
 * It fails if the task's document lacks a field, orphans are returned, the task outlives its documents, or a batch has more documents
 * than its size.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshCollection, heldBy, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "range_deletion", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = shardConnection(db, first);
const tasks = (shard) => shardConnection(db, shard).getDB("config").rangeDeletions
    .find({nss: coll.getFullName()}).toArray();

const delay = {getParameter: 1, orphanCleanupDelaySecs: 1};
const was = assert.commandWorked(donor.adminCommand(delay)).orphanCleanupDelaySecs;
assert.commandWorked(donor.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
const point = configureFailPoint(donor, "suspendRangeDeletion");
try {
    assert.commandWorked(db.adminCommand(
        {moveRange: coll.getFullName(), min: {x: 0}, max: {x: MaxKey}, toShard: second}));
    assert.eq([20, 10], [heldBy(coll, first), heldBy(coll, second)]);

    // The task.
    assert.eq(1, tasks(first).length);
    const task = tasks(first)[0];
    assert.eq({min: {x: 0}, max: {x: MaxKey}}, task.range);
    assert.eq(collectionEntry(coll).uuid, task.collectionUuid);
    assert.eq(first, task.donorShardId);
    assert.contains(task.whenToClean, ["now", "delayed"]);
    assert.eq(10, Number(task.numOrphanDocs));
    assert(!task.pending, "the migration is committed");
    assert.eq({x: 1}, task.keyPattern);
    assert(task.timestamp instanceof Timestamp, tojson(task));
    assert.soon(() => tasks(second).length === 0, "the recipient's own task goes with the commit");

    // Orphans are nobody's: not found, not counted, not updated.
    assert.eq(20, coll.find().itcount());
    assert.eq(20, coll.countDocuments({}));
    assert.eq(20, coll.aggregate([{$group: {_id: null, n: {$sum: 1}}}]).next().n);
    assert.eq(20, assert.commandWorked(coll.updateMany({}, {$set: {v: 1}})).modifiedCount);
    assert.eq(10, donor.getDB(testDB.getName()).c.find({v: {$exists: false}}).itcount());
    assert.eq(20, coll.distinct("x").length);

    // Statistics tell owned and orphaned documents apart.
    const stats = testDB.c.aggregate([{$collStats: {storageStats: {}}}]).toArray();
    const orphans = stats.map((s) => [s.shard, Number(s.storageStats.numOrphanDocs)]);
    assert.sameMembers([[first, 10], [second, 0]], orphans);
    const status = assert.commandWorked(donor.adminCommand({serverStatus: 1}));
    assert.gte(Number(status.shardingStatistics.rangeDeleterTasks), 1);

    // The range cannot come back while its remains are here.
    const patience = {setParameter: 1, receiveChunkWaitForRangeDeleterTimeoutMS: 500};
    const usual = assert.commandWorked(donor.adminCommand(patience)).was;
    assert.commandFailedWithCode(db.adminCommand(
        {moveRange: coll.getFullName(), min: {x: 0}, max: {x: MaxKey}, toShard: first}), [96, 200, 262]);
    patience.receiveChunkWaitForRangeDeleterTimeoutMS = usual;
    assert.commandWorked(donor.adminCommand(patience));
} finally {
    point.off();
}

// cleanupOrphaned waits for the deletion.
assert.commandWorked(donor.adminCommand({cleanupOrphaned: coll.getFullName()}));
assert.eq([10, 10], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq([], tasks(first));
assert.eq(20, coll.find({v: 1}).itcount());
assert.commandFailedWithCode(donor.adminCommand({cleanupOrphaned: "nodot"}), 73);

// In batches of a size, with a pause after each that is as long as the parameter says now.
const batches = (size, pauseMillis) => assert.commandWorked(donor.adminCommand(
    {setParameter: 1, rangeDeleterBatchSize: size, rangeDeleterBatchDelayMS: pauseMillis}));
batches(4, 3600 * 1000);
try {
    assert.commandWorked(db.adminCommand({moveRange: coll.getFullName(), min: {x: -10}, max: {x: 0}, toShard: second}));
    assert.soon(() => heldBy(coll, first) < 10);
    assert.eq(6, heldBy(coll, first));
    assert.eq(1, tasks(first).length);
    batches(3, 0);
    assert.soon(() => tasks(first).length === 0);
    assert.eq([0, 20], [heldBy(coll, first), heldBy(coll, second)]);
} finally {
    batches(NumberInt(2147483647), 20);
}
assert.commandWorked(db.adminCommand(
    {moveRange: coll.getFullName(), min: {x: -10}, max: {x: 0}, toShard: first, waitForDelete: true}));

// A task of a collection that is dropped ends with it.
const suspended = configureFailPoint(shardConnection(db, second), "suspendRangeDeletion");
assert.commandWorked(db.adminCommand(
    {moveRange: coll.getFullName(), min: {x: 0}, max: {x: MaxKey}, toShard: first}));
assert.eq(1, tasks(second).length);
assert(coll.drop());
suspended.off();
assert.soon(() => tasks(second).length === 0);
assert.commandWorked(donor.adminCommand({setParameter: 1, orphanCleanupDelaySecs: was}));
assert.commandWorked(testDB.dropDatabase());
