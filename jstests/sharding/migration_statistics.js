/**
 * serverStatus counts what migrations do on donor and recipient, and currentOp shows how far one has come.
 * It fails if a counter does not move with what it counts, or the operation is not shown while it runs.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, inBackground, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_statistics", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 15; x++) {
    assert.commandWorked(coll.insert({x: x, pad: "p".repeat(200)}));
}
const donor = shardConnection(db, first);
const recipient = shardConnection(db, second);
const statistics = (shard) => assert.commandWorked(shard.adminCommand({serverStatus: 1})).shardingStatistics;

const before = [statistics(donor), statistics(recipient)];
let move;
whileHung(donor, "moveChunkHangAtStep4", (point) => {
    move = inBackground(db, {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true});
    point.wait();

    // The donor's operation.
    const running = donor.getDB("admin").aggregate([
        {$currentOp: {allUsers: true, idleConnections: true}},
        {$match: {desc: "MoveChunk"}},
    ]).toArray();
    assert.eq(1, running.length, tojson(running));
    assert.eq("step 4 of 6", running[0].msg);

    // The same as serverStatus shows it.
    const report = assert.commandWorked(donor.adminCommand({serverStatus: 1})).sharding.migrations;
    assert.eq(first, report.source);
    assert.eq(second, report.destination);
    assert.eq(true, report.isDonorShard);
    assert.eq(ns, report.collection);
    assert.eq({x: 0}, report.chunk.min);
    assert.eq({x: MaxKey}, report.chunk.max);
    const received = assert.commandWorked(recipient.adminCommand({serverStatus: 1})).sharding.migrations;
    assert.eq(false, received.isDonorShard);
    assert.eq(ns, received.collection);

    // One migration at a time for a shard, as donor and as recipient.
    assert.commandWorked(testDB.plain.insert({_id: 1}));
    const other = testDB.other;
    assert.commandWorked(db.adminCommand({shardCollection: other.getFullName(), key: {_id: 1}}));
    assert.commandFailedWithCode(
        db.adminCommand({moveRange: other.getFullName(), min: {_id: MinKey}, max: {_id: MaxKey}, toShard: second}), 117);
});
assert.commandWorked(move.returnData());

const after = [statistics(donor), statistics(recipient)];
const grown = (i, name) => Number(after[i][name]) - Number(before[i][name]);
assert.gte(grown(0, "countDonorMoveChunkStarted"), 1);
assert.eq(1, grown(0, "countDonorMoveChunkCommitted"));
assert.eq(15, grown(0, "countDocsClonedOnDonor"));
assert.gt(grown(0, "countBytesClonedOnDonor"), 15 * 200);
assert.eq(15, grown(0, "countDocsDeletedByRangeDeleter"));
assert.gte(grown(0, "totalCriticalSectionTimeMillis"), 0);
assert.gte(grown(0, "totalCriticalSectionTimeMillis"), grown(0, "totalCriticalSectionCommitTimeMillis"));
assert.gte(grown(0, "totalDonorChunkCloneTimeMillis"), 0);
assert.eq(1, grown(1, "countRecipientMoveChunkStarted"));
assert.eq(15, grown(1, "countDocsClonedOnRecipient"));
assert.gt(grown(1, "countBytesClonedOnRecipient"), 15 * 200);
assert.eq(0, grown(1, "countDonorMoveChunkStarted"));

// Nothing is left of it.
assert.commandWorked(donor.adminCommand({_shardsvrJoinMigrations: 1}));
assert.eq({}, assert.commandWorked(donor.adminCommand({serverStatus: 1})).sharding.migrations);
assert.eq(0, donor.getDB("config").migrationCoordinators.find().itcount());
assert.commandWorked(testDB.dropDatabase());
