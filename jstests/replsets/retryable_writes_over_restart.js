/**
 * A driver repeats a write after the primary was killed; the restarted node must know that it was done.
 * It fails if the history of sessions is kept in memory only, or a repeated findAndModify answers another document.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
let testDB = rst.getPrimary().getDB("test");
const lsid = {id: UUID()};
const commands = [
    {insert: "c", documents: [{_id: 1, n: 0}, {_id: 2, n: 0}]},
    {update: "c", updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}, {q: {_id: 2}, u: {$inc: {n: 1}}}]},
    {update: "c", updates: [{q: {_id: 3}, u: {$inc: {n: 1}}, upsert: true}]},
    {findAndModify: "c", query: {_id: 1}, update: {$inc: {n: 10}}, new: false},
    {findAndModify: "c", query: {_id: 1}, update: {$inc: {n: 10}}, new: true},
    {findAndModify: "c", query: {_id: 2}, remove: true},
    {delete: "c", deletes: [{q: {_id: 3}, limit: 1}]},
];
const run = (i) => assert.commandWorked(testDB.runCommand(Object.assign(
    {}, commands[i], {lsid: lsid, txnNumber: NumberLong(i + 1), writeConcern: {w: "majority"}})));

commands.forEach((command, i) => {
    const first = run(i);
    const state = testDB.c.find().sort({_id: 1}).toArray();
    rst.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    rst.start(0, {}, true);
    testDB = rst.getPrimary().getDB("test");
    const second = run(i);
    for (const field of ["n", "nModified", "upserted", "value", "lastErrorObject"]) {
        assert.eq(first[field], second[field], `${field} of ${tojson(command)}`);
    }
    assert.eq(state, testDB.c.find().sort({_id: 1}).toArray(), tojson(command));
    assert("retriedStmtIds" in second || "retriedStmtId" in second, tojson(second));
});

// The record of the session.
const record = testDB.getSiblingDB("config").transactions.findOne({"_id.id": lsid.id});
assert.eq(NumberLong(commands.length), record.txnNum);
assert(record.lastWriteDate instanceof Date);
assert.commandFailedWithCode(testDB.runCommand(
    {insert: "c", documents: [{_id: 77}], lsid: lsid, txnNumber: NumberLong(2)}), 225);

// A clean restart makes no difference.
const last = commands.length - 1;
rst.restart(0);
testDB = rst.getPrimary().getDB("test");
assert.eq(1, run(last).n);
assert.eq(0, testDB.c.find({_id: 3}).itcount());
rst.stopSet();
