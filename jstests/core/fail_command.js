/**
 * failCommand makes chosen commands fail, and drivers' tests are built upon it.
 * Fails when it hits another command, another number of times or with another code than configured.
 */
const coll = db.fail_command;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

function configure(mode, data) {
    return db.adminCommand({configureFailPoint: "failCommand", mode: mode, data: data || {}});
}
function off() {
    return assert.commandWorked(configure("off"));
}

try {
    assert.commandWorked(configure({times: 2}, {failCommands: ["distinct"], errorCode: 42, namespace: coll.getFullName()}));
    assert.commandFailedWithCode(db.runCommand({distinct: coll.getName(), key: "_id"}), 42);
    assert.commandWorked(db.runCommand({find: coll.getName()}));
    assert.commandWorked(db.runCommand({distinct: "fail_command_other", key: "_id"}));
    assert.commandFailedWithCode(db.runCommand({distinct: coll.getName(), key: "_id"}), 42);
    assert.commandWorked(db.runCommand({distinct: coll.getName(), key: "_id"}));
    off();

    assert.commandWorked(configure({skip: 1}, {failCommands: ["distinct"], errorCode: ErrorCodes.BadValue, namespace: coll.getFullName()}));
    assert.commandWorked(db.runCommand({distinct: coll.getName(), key: "_id"}));
    const reply = db.runCommand({distinct: coll.getName(), key: "_id"});
    assert.commandFailedWithCode(reply, ErrorCodes.BadValue);
    assert.eq("BadValue", reply.codeName);
    assert(/failCommand/.test(reply.errmsg), tojson(reply));
    off();

    // A write concern error leaves the write done.
    assert.commandWorked(configure({times: 1}, {
        failCommands: ["insert"],
        namespace: coll.getFullName(),
        writeConcernError: {code: NumberInt(64), codeName: "WriteConcernFailed", errmsg: "made up", errInfo: {x: 1}}
    }));
    const written = db.runCommand({insert: coll.getName(), documents: [{_id: 2}]});
    assert.eq(1, written.n);
    assert.eq(64, written.writeConcernError.code);
    assert.eq("made up", written.writeConcernError.errmsg);
    assert.neq(null, coll.findOne({_id: 2}));
    off();

    // Labels of errors are made up as well.
    assert.commandWorked(configure({times: 1}, {
        failCommands: ["distinct"], errorCode: 91, errorLabels: ["Thing", "Other"], namespace: coll.getFullName()
    }));
    assert.eq(["Thing", "Other"], db.runCommand({distinct: coll.getName(), key: "_id"}).errorLabels);
    off();

    // Blocking takes its time and then lets the command through.
    assert.commandWorked(configure({times: 1}, {failCommands: ["distinct"], blockConnection: true, blockTimeMS: 300, namespace: coll.getFullName()}));
    const begin = Date.now();
    assert.commandWorked(db.runCommand({distinct: coll.getName(), key: "_id"}));
    assert.lte(290, Date.now() - begin);
} finally {
    off();
}
assert.commandFailedWithCode(db.adminCommand({configureFailPoint: "noSuchFailPoint", mode: "alwaysOn"}), [ErrorCodes.FailPointSetFailed, ErrorCodes.BadValue]);
assert.commandFailedWithCode(configure("sometimes"), [ErrorCodes.BadValue, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(configure({times: -1}), [ErrorCodes.BadValue, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(db.runCommand({configureFailPoint: "failCommand", mode: "off"}), ErrorCodes.Unauthorized);
