/**
 * Measurements are on every member, survive a restart, are inserted once however often the insert is sent, and expire by bucket.
 * Fails when buckets are lost or doubled by the log, a checkpoint or a retry, or the monitor does not look at them.
 *
 * @tags: [
 *   requires_own_servers,
 *   requires_replication,
 * ]
 */
const set = new ReplSetTest({nodes: 2});
set.startSet();
set.initiate();
let db = set.getPrimary().getDB("series");
assert.commandWorked(db.createCollection("c", {timeseries: {timeField: "t", metaField: "m"}}));
const start = ISODate("2024-03-01T10:00:00Z").getTime();
const documents = [...Array(1500).keys()].map(i => ({_id: i, t: new Date(start + i * 1000), m: i % 2, v: i}));
const session = {id: UUID()};
const insert = {insert: "c", documents, lsid: session, txnNumber: NumberLong(1)};
assert.eq(1500, assert.commandWorked(db.runCommand(insert)).n);
const again = assert.commandWorked(db.runCommand(insert));
assert.eq([1500, 1500], [again.n, again.retriedStmtIds.length]);
const remove = {delete: "c", deletes: [{q: {v: {$gte: 10}}, limit: 1}], lsid: session, txnNumber: NumberLong(2)};
assert.eq(1, assert.commandWorked(db.runCommand(remove)).n);
assert.eq(1, assert.commandWorked(db.runCommand(remove)).n);
assert.eq(1499, db.c.find().itcount());
assert.commandFailedWithCode(
    db.runCommand({
        insert: "c", documents: [{t: new Date()}], lsid: session, txnNumber: NumberLong(3), startTransaction: true, autocommit: false,
    }),
    ErrorCodes.OperationNotSupportedInTransaction);

// What a `$out` that is killed would leave can be dropped by its name.
assert.commandWorked(db.runCommand({
    aggregate: "c", pipeline: [{$out: {db: "series", coll: "copy", timeseries: {timeField: "t"}}}], cursor: {},
}));
const temporary = set.getPrimary().getDB("local").oplog.rs.find({"o.create": /agg_out/}).toArray().map(e => e.o.create);
assert.eq(1, temporary.length);
assert(temporary[0].startsWith("tmp.agg_out."), temporary[0]);
assert.eq(1499, db.copy.find().itcount());
assert(db.copy.drop());

set.awaitReplication();
function held(db) {
    const got = db.c.find().toArray().map(d => d.v).sort((a, b) => a - b);
    assert.eq(1499, got.length);
    assert.eq(1499, new Set(got).size);
    assert.eq("timeseries", db.getCollectionInfos({name: "c"})[0].type);
    assert.eq([{v: 2, key: {m: 1, t: 1}, name: "m_1_t_1"}], db.c.getIndexes());
}
held(db);
const secondary = set.getSecondary();
secondary.setSecondaryOk();
held(secondary.getDB("series"));
assert.commandWorked(set.getPrimary().adminCommand({fsync: 1}));
set.restart(0);
set.restart(1);
set.awaitSecondaryNodes();
db = set.getPrimary().getDB("series");
held(db);
assert.eq(1500, assert.commandWorked(db.runCommand({...insert, txnNumber: NumberLong(9), documents: documents.slice(0, 1)})).n + 1499);
assert.eq(1500, db.c.find().itcount());

assert.commandWorked(set.getPrimary().adminCommand({setParameter: 1, ttlMonitorSleepSecs: 1}));
assert.commandWorked(db.createCollection("t", {timeseries: {timeField: "t"}, expireAfterSeconds: 3600}));
assert.commandWorked(db.t.insert([{t: new Date(start)}, {t: new Date()}]));
assert.soon(() => db.t.find().itcount() === 1);
set.stopSet();
