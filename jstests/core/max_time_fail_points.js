/**
 * Tests elsewhere make commands time out, or never, through fail points.
 * Fails when maxTimeAlwaysTimeOut lets a command with a limit pass, or maxTimeNeverTimeOut one expire.
 *
 * @tags: [
 *   # The fail points are those of the node that is asked.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.max_time_fail_points;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}, {_id: 3}]));

function configure(name, mode) {
    return assert.commandWorked(db.adminCommand({configureFailPoint: name, mode: mode}));
}
configure("maxTimeAlwaysTimeOut", "alwaysOn");
try {
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), maxTimeMS: 100 * 1000}), ErrorCodes.MaxTimeMSExpired);
    assert.commandFailedWithCode(db.runCommand({ping: 1, maxTimeMS: 100 * 1000}), ErrorCodes.MaxTimeMSExpired);
    assert.commandFailedWithCode(db.runCommand({insert: coll.getName(), documents: [{_id: 4}], maxTimeMS: 100 * 1000}), ErrorCodes.MaxTimeMSExpired);
    // Without a limit nothing expires.
    assert.commandWorked(db.runCommand({find: coll.getName()}));
} finally {
    configure("maxTimeAlwaysTimeOut", "off");
}
assert.eq(3, coll.find().itcount());

configure("maxTimeNeverTimeOut", "alwaysOn");
try {
    assert.commandWorked(db.runCommand({find: coll.getName(), maxTimeMS: 1}));
} finally {
    configure("maxTimeNeverTimeOut", "off");
}
