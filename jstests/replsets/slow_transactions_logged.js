/**
 * Who looks for what holds locks reads the log: a transaction that was open for longer than `slowms` leaves a line there when it
 * ends, with what it was, how it ended and how long it was busy.
 * It fails if a slow transaction leaves no line or two, if a fast one leaves a line, or if the line's figures do not fit.
 *
 * @tags: [requires_replication]
 */
const name = jsTestName();
const admin = db.getSiblingDB("admin");
assert.commandWorked(db.dropDatabase());
assert.commandWorked(db[name].insert([{_id: 1}, {_id: 2}, {_id: 3}]));
const was = assert.commandWorked(admin.runCommand({profile: -1}));

const session = db.getMongo().startSession();
const coll = session.getDatabase(db.getName())[name];
const lines = () => {
    const all = assert.commandWorked(admin.runCommand({getLog: "global"})).log.map((line) => JSON.parse(line));
    const own = (line) => line.id === 51802 && line.attr.parameters.lsid.id.$uuid === id;
    return all.filter(own).map((line) => ({component: line.c, msg: line.msg, attr: line.attr}));
};
const id = tojson(session.getSessionId().id).match(/[0-9a-f-]{36}/)[0];
const transaction = (slowms, statements, end) => {
    assert.commandWorked(admin.runCommand({profile: 0, slowms}));
    const before = lines().length;
    session.startTransaction({readConcern: {level: "snapshot"}});
    statements();
    assert.commandWorked(session[end]());
    return lines().slice(before);
};
const change = () => {
    coll.insert([{_id: 4}, {_id: 5}]);
    coll.update({_id: 1}, {$set: {x: 1}});
    coll.remove({_id: 2});
    sleep(30);
};

let [line, ...others] = transaction(20, change, "commitTransaction_forTesting");
assert.eq(0, others.length);
assert.eq(["TXN", "transaction"], [line.component, line.msg]);
let attr = line.attr;
assert.eq([0, false, "snapshot"],
    [attr.parameters.txnNumber, attr.parameters.autocommit, attr.parameters.readConcern.level], tojson(attr));
assert(/^Timestamp\(\d+, \d+\)$/.test(attr.readTimestamp), tojson(attr));
assert.eq([2, 1, 1, "committed", false],
    [attr.ninserted, attr.nModified, attr.ndeleted, attr.terminationCause, attr.wasPrepared], tojson(attr));
assert.gte(attr.docsExamined, 1, tojson(attr));
assert.gt(attr.timeActiveMicros, 0, tojson(attr));
assert.gte(attr.timeInactiveMicros, 25000, tojson(attr));
assert.eq(attr.durationMillis, Math.floor((attr.timeActiveMicros + attr.timeInactiveMicros) / 1000), tojson(attr));

// One that is aborted, by the client or by its own error, says so.
[line, ...others] = transaction(0, () => coll.insert({_id: 9}), "abortTransaction_forTesting");
assert.eq(["aborted", 1, 0], [line.attr.terminationCause, line.attr.ninserted, others.length]);
assert.commandWorked(admin.runCommand({profile: 0, slowms: 0}));
const before = lines().length;
session.startTransaction();
assert.writeError(coll.insert({_id: 1}));
assert.eq(["aborted"], lines().slice(before).map((l) => l.attr.terminationCause));
session.abortTransaction_forTesting();
assert.eq(before + 1, lines().length);

// A fast one leaves no line.
assert.eq([], transaction(60000, () => coll.insert({_id: 10}), "commitTransaction_forTesting"));
assert.commandWorked(admin.runCommand({profile: 0, slowms: was.slowms}));
session.endSession();
