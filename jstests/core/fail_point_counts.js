/**
 * Tests wait until a fail point was entered, so the server counts how often it was.
 * Fails when configureFailPoint does not report the count, or waitForFailPoint returns too early or never.
 */
const coll = db.fail_point_counts;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

const data = {failCommands: ["distinct"], errorCode: 42, namespace: coll.getFullName()};
const before = assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: "alwaysOn", data: data})).count;
try {
    for (let i = 0; i < 3; i++) {
        assert.commandFailedWithCode(db.runCommand({distinct: coll.getName(), key: "_id"}), 42);
    }
    const waited = db.adminCommand({waitForFailPoint: "failCommand", timesEntered: NumberLong(before + 3), maxTimeMS: 30 * 1000});
    assert.commandWorked(waited);
    assert.commandFailedWithCode(db.adminCommand({waitForFailPoint: "failCommand", timesEntered: NumberLong(before + 1000), maxTimeMS: 100}),
                                 ErrorCodes.MaxTimeMSExpired);
} finally {
    const after = assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: "off"})).count;
    assert.lte(before + 3, after);
}

// The shell's helper over it.
const failPoint = configureFailPoint(db, "failCommand", data, {times: 1});
assert.commandFailedWithCode(db.runCommand({distinct: coll.getName(), key: "_id"}), 42);
failPoint.wait();
failPoint.off();
assert.commandWorked(db.runCommand({distinct: coll.getName(), key: "_id"}));
