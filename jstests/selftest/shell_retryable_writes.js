/**
 * A session that retries writes survives one broken connection or one failover a statement, and applies it once.
 * Fails when the shell sends a write again without its number, retries more than once, or retries what may not be.
 *
 * @tags: [requires_replica_set]
 */
const admin = db.getSiblingDB("admin");
const session = new Mongo(db.getMongo().host).startSession({retryWrites: true});
const coll = session.getDatabase(db.getName()).shell_retryable_writes;
coll.drop();

function failing(times, failCommands, data) {
    assert.commandWorked(admin.runCommand({
        configureFailPoint: "failCommand", mode: {times}, data: Object.assign({failCommands}, data),
    }));
}
const disable = () => assert.commandWorked(admin.runCommand({configureFailPoint: "failCommand", mode: "off"}));

for (const data of [{closeConnection: true}, {errorCode: ErrorCodes.NotWritablePrimary}, {errorCode: ErrorCodes.PrimarySteppedDown}]) {
    const words = tojson(data);
    coll.remove({});
    failing(1, ["insert"], data);
    assert.eq(1, assert.commandWorked(coll.insert({_id: 1, n: 0}), words).nInserted, words);
    failing(1, ["update"], data);
    assert.eq(1, coll.updateOne({_id: 1}, {$inc: {n: 1}}).modifiedCount, words);
    failing(1, ["findAndModify"], data);
    assert.eq({_id: 1, n: 2}, coll.findAndModify({query: {_id: 1}, update: {$inc: {n: 1}}, new: true}), words);
    failing(1, ["delete"], data);
    assert.eq(1, coll.deleteOne({_id: 1}).deletedCount, words);
}

// Not twice, not without a session that asks for it, and not what the server could apply twice.
failing(2, ["insert"], {closeConnection: true});
assert(isNetworkError(assert.throws(() => coll.insert({_id: 2}))));
disable();
failing(1, ["insert"], {closeConnection: true});
const plain = new Mongo(db.getMongo().host).getDB(db.getName()).shell_retryable_writes;
assert(isNetworkError(assert.throws(() => plain.insert({_id: 3}))));
disable();
assert.eq(0, plain.count());
failing(1, ["update"], {errorCode: ErrorCodes.NotWritablePrimary});
assert.commandFailedWithCode(coll.update({}, {$set: {a: 1}}, {multi: true}), ErrorCodes.NotWritablePrimary);
disable();
failing(1, ["insert"], {errorCode: ErrorCodes.BadValue});
assert.commandFailedWithCode(coll.insert({_id: 4}), ErrorCodes.BadValue);
disable();

// The server knows the number: the same statement again is answered from its history.
const number = session.getTxnNumber_forTesting();
assert.commandWorked(coll.insert({_id: 5}));
const used = session.getTxnNumber_forTesting();
assert.eq(1, used.toNumber() - number.toNumber());
const again = {insert: coll.getName(), documents: [{_id: 5}], lsid: session.getSessionId(), txnNumber: used};
assert.eq(1, assert.commandWorked(db.runCommand(again)).n);
assert.eq(1, coll.count({_id: 5}));
session.endSession();

// The shell's own flag makes every session retry, the implicit one too.
const code = "assert.eq(1, assert.commandWorked(db.shell_retryable_writes.insert({_id: 6})).nInserted)";
const shell = (...flags) => runMongoProgram("mongo", ...flags, "--eval", code, db.getMongo().host + "/" + db.getName());
failing(1, ["insert"], {errorCode: ErrorCodes.NotWritablePrimary});
assert.neq(0, shell());
failing(1, ["insert"], {errorCode: ErrorCodes.NotWritablePrimary});
assert.eq(0, shell("--retryWrites"));
disable();
