/**
 * Operators see with which concerns applications read and write, and what the defaults decide.
 * Fails when a read or a write counts under another concern, or those without one do not show which default held.
 *
 * @tags: [requires_own_servers]
 */
const set = new ReplSetTest({nodes: 1, nodeOptions: {setParameter: {reportOpWriteConcernCountersInServerStatus: true}}});
set.startSet();
set.initiate();
const primary = set.getPrimary();
const coll = primary.getDB("concern_counters").c;
assert.commandWorked(coll.insert({_id: 0}, {writeConcern: {w: "majority"}}));
const status = () => assert.commandWorked(primary.adminCommand({serverStatus: 1}));

/** By how much `act` raises the number at `path`, which may be missing before. */
function rise(path, act) {
    const at = () => Number(path.split(".").reduce((found, name) => found === undefined ? undefined : found[name], status()) || 0);
    const before = at();
    act();
    return at() - before;
}
const read = concern => () => assert.commandWorked(coll.runCommand("find", concern ? {readConcern: concern} : {}));
const outside = "readConcernCounters.nonTransactionOps.";
assert.lte(1, rise(outside + "noneInfo.implicitDefault.local", read()));
for (const level of ["local", "available", "majority", "linearizable"]) {
    assert.eq(1, rise(outside + level, read({level})), level);
}
assert.eq(1, rise(outside + "snapshot.withoutClusterTime", read({level: "snapshot"})));
const now = assert.commandWorked(coll.runCommand("find", {readConcern: {level: "snapshot"}})).cursor.atClusterTime;
assert.eq(1, rise(outside + "snapshot.withClusterTime", read({level: "snapshot", atClusterTime: now})));

const session = primary.startSession();
const transaction = () => {
    session.startTransaction({readConcern: {level: "snapshot"}});
    const within = session.getDatabase("concern_counters").c;
    within.find().itcount();
    within.find().itcount();
    assert.commandWorked(session.commitTransaction_forTesting());
};
assert.eq(1, rise("readConcernCounters.transactionOps.snapshot.withoutClusterTime", transaction));
assert.eq(0, rise(outside + "snapshot.withoutClusterTime", transaction));

const writes = "opWriteConcernCounters.";
const insert = concern => () => assert.commandWorked(coll.runCommand(
    "insert", Object.assign({documents: [{}, {}]}, concern ? {writeConcern: concern} : {})));
assert.eq(2, rise(writes + "insert.none", insert()));
assert.eq(2, rise(writes + "insert.noneInfo.implicitDefault.wmajority", insert()));
assert.eq(2, rise(writes + "insert.wmajority", insert({w: "majority"})));
assert.eq(2, rise(writes + "insert.wnum.1", insert({w: 1})));
assert.eq(1, rise(writes + "delete.wmajority", () => coll.remove({_id: 0}, {writeConcern: {w: "majority"}})));

assert.commandWorked(primary.adminCommand(
    {setDefaultRWConcern: 1, defaultReadConcern: {level: "majority"}, defaultWriteConcern: {w: 1}}));
assert.lte(1, rise(outside + "noneInfo.CWRC.majority", read()));
assert.eq(2, rise(writes + "insert.noneInfo.CWWC.wnum.1", insert()));
set.stopSet();

const silent = new ReplSetTest({nodes: 1});
silent.startSet();
silent.initiate();
assert(!("opWriteConcernCounters" in assert.commandWorked(silent.getPrimary().adminCommand({serverStatus: 1}))));
silent.stopSet();
