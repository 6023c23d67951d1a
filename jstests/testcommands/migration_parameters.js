/**
 * Parameters of migrations take effect: a clone in small batches with pauses takes its time, and a shard whose range
 * deleter is switched off takes in no ranges.
 * Fails when migrateCloneInsertionBatchSize and its delay are passed over, or disableResumableRangeDeleter is.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_parameters", {x: 1}, [{x: 0}], [first, first]);
assert.commandWorked(coll.insert([...Array(20).keys()].map(x => ({x: x}))));
const recipient = shardConnection(db, second);
const admin = recipient.getDB("admin");

function withParameters(parameters, run) {
    const before = {};
    for (const [name, value] of Object.entries(parameters)) {
        before[name] = assert.commandWorked(admin.runCommand({setParameter: 1, [name]: value})).was;
    }
    try {
        run();
    } finally {
        for (const [name, value] of Object.entries(before)) {
            assert.commandWorked(admin.runCommand({setParameter: 1, [name]: value}));
        }
    }
}

const move = {moveChunk: coll.getFullName(), find: {x: 0}, to: second, _waitForDelete: true};
withParameters({disableResumableRangeDeleter: true}, () => {
    assert.commandFailedWithCode(db.adminCommand(move), ErrorCodes.ResumableRangeDeleterDisabled);
    assert.commandFailedWithCode(admin.runCommand({cleanupOrphaned: coll.getFullName()}), ErrorCodes.ResumableRangeDeleterDisabled);
});
withParameters({migrateCloneInsertionBatchSize: 2, migrateCloneInsertionBatchDelayMS: 60}, () => {
    const begun = Date.now();
    assert.commandWorked(db.adminCommand(move));
    // Ten batches of two, with a pause behind each.
    assert.gte(Date.now() - begun, 600);
});
assert.eq(20, recipient.getCollection(coll.getFullName()).find().itcount());
assert.eq(20, coll.find().itcount());
