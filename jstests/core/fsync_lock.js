/**
 * Backups lock a node against writes while they copy its files.
 * Fails when a write goes through while the lock is held, reads do not, or the lock cannot be let go.
 *
 * @tags: [
 *   # Routers lock all shards, which belong to other tests as well.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.fsync_lock;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));
assert.commandWorked(db.adminCommand({fsync: 1}));

const locked = assert.commandWorked(db.adminCommand({fsync: 1, lock: true}));
try {
    assert.eq(1, locked.lockCount);
    assert.eq(true, assert.commandWorked(db.adminCommand({currentOp: 1})).fsyncLock);
    // Locks are counted.
    assert.eq(2, assert.commandWorked(db.adminCommand({fsync: 1, lock: true})).lockCount);
    assert.eq(1, assert.commandWorked(db.adminCommand({fsyncUnlock: 1})).lockCount);

    assert.eq([{_id: 1}], coll.find().toArray());
    assert.commandFailedWithCode(db.runCommand({insert: coll.getName(), documents: [{_id: 2}], maxTimeMS: 300}), ErrorCodes.MaxTimeMSExpired);
    assert.eq(1, coll.find().itcount());
} finally {
    assert.eq(0, assert.commandWorked(db.adminCommand({fsyncUnlock: 1})).lockCount);
}
assert.commandWorked(coll.insert({_id: 3}));
assert(!assert.commandWorked(db.adminCommand({currentOp: 1})).fsyncLock);
assert.commandFailedWithCode(db.adminCommand({fsyncUnlock: 1}), [ErrorCodes.IllegalOperation, ErrorCodes.LockFailed]);
assert.commandFailedWithCode(db.runCommand({fsync: 1}), ErrorCodes.Unauthorized);
