/**
 * A clustered collection stays one, with the name of its index, on secondaries and after a restart, and its documents expire.
 * Fails when the log or a checkpoint loses the definition, or the monitor does not look at clustered collections.
 *
 * @tags: [
 *   requires_own_servers,
 *   requires_replication,
 * ]
 */
const set = new ReplSetTest({nodes: 2});
set.startSet();
set.initiate();
let db = set.getPrimary().getDB("clustered");
assert.commandWorked(db.createCollection("c", {clusteredIndex: {key: {_id: 1}, unique: true, name: "mine"}}));
assert.commandWorked(db.c.insert([{_id: 3}, {_id: 1}, {_id: 2}]));
set.awaitReplication();
function check(db) {
    assert.eq([{v: 2, key: {_id: 1}, name: "mine", unique: true, clustered: true}], db.c.getIndexes());
    assert.eq([1, 2, 3], db.c.find().toArray().map(d => d._id));
}
check(db);
const secondary = set.getSecondary();
secondary.setSecondaryOk();
check(secondary.getDB("clustered"));

for (const fsync of [false, true]) {
    if (fsync) {
        assert.commandWorked(set.getPrimary().adminCommand({fsync: 1}));
    }
    set.restart(0);
    set.restart(1);
    set.awaitSecondaryNodes();
    db = set.getPrimary().getDB("clustered");
    check(db);
}

assert.commandWorked(set.getPrimary().adminCommand({setParameter: 1, ttlMonitorSleepSecs: 1}));
assert.commandWorked(
    db.createCollection("t", {clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 60}));
const old = new Date(Date.now() - 3600 * 1000);
assert.commandWorked(db.t.insert([{_id: old}, {_id: new Date()}, {_id: "old"}]));
assert.soon(() => db.t.countDocuments({}) === 2);
assert.eq(0, db.t.countDocuments({_id: old}));
set.stopSet();
