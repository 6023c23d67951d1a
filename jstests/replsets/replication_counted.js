/**
 * Monitoring reads how much a member has fetched and applied from serverStatus.metrics.repl.
 * It fails if an entry, a copy or a report is not counted, or if a primary counts what it applied by itself.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
const counted = (node) => assert.commandWorked(node.adminCommand({serverStatus: 1})).metrics.repl;
const before = counted(secondary);
const led = counted(primary);
const applied = (node) => assert.commandWorked(node.adminCommand({serverStatus: 1})).opcountersRepl;
const [appliedBefore, ledBefore] = [applied(secondary), applied(primary)];
assert.eq(1, before.initialSync.completed);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(insert(primary, [{_id: i, filler: "x".repeat(1000)}], {w: 2}));
}
const after = counted(secondary);
const rise = (path) => path.split(".").reduce((d, name) => d[name], after) - path.split(".").reduce((d, name) => d[name], before);
for (const path of ["apply.ops", "network.ops"]) {
    assert.gte(rise(path), 20, path);
}
assert.gte(rise("network.bytes"), 20000);
for (const path of ["apply.batches.num", "network.getmores.num", "network.replSetUpdatePosition.num"]) {
    assert.gt(rise(path), 0, path);
}
assert.gte(after.network.readersCreated, 1);
// Who serves counts what it serves.
assert.gt(counted(primary).network.oplogGetMoresProcessed.num, led.network.oplogGetMoresProcessed.num);
assert.eq(0, after.initialSync.failures);
assert.gte(after.syncSource.numSelections, 1);
assert.eq(1, after.syncSource.numTimesChoseDifferent, () => tojson(after.syncSource));
assert.eq(after.apply.ops, after.apply.batchSize);
assert.eq(led.apply.ops, counted(primary).apply.ops);

// The operations among them by kind, those of a transaction or another joint entry one by one.
const coll = primary.getDB("counted_kinds").c;
assert.commandWorked(coll.getDB().createCollection("c", {writeConcern: {w: 2}}));
assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}, {_id: 3}], {writeConcern: {w: 2}}));
assert.commandWorked(coll.update({_id: 1}, {$set: {a: 1}}, {writeConcern: {w: 2}}));
assert.commandWorked(coll.remove({_id: {$gte: 2}}, {writeConcern: {w: 2}}));
const kinds = applied(secondary);
for (const [kind, least] of [["insert", 23], ["update", 1], ["delete", 2], ["command", 1]]) {
    assert.gte(kinds[kind] - appliedBefore[kind], least, kind);
}
assert.eq([0, 0], [kinds.query, kinds.getmore].map(Number));
assert.eq(ledBefore, applied(primary), "a primary applies nothing of others");

// What waits is counted where it waits to be written; nothing waits to be applied after that.
for (const buffer of [after.buffer, after.buffer.write, after.buffer.apply]) {
    assert.gt(buffer.maxSizeBytes, 0, () => tojson(after.buffer));
}
assert.gte(after.apply.attemptsToBecomeSecondary, 1);

// How far each member is, where that is asked for.
const shown = (options) => assert.commandWorked(primary.adminCommand(Object.assign({serverStatus: 1}, options)));
for (const options of [{}, {repl: true}]) {
    assert(!("replicationProgress" in shown(options).repl), tojson(options));
}
const last = () => assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).optimes.appliedOpTime;
assert.soon(() => {
    const progress = shown({repl: 1}).repl.replicationProgress;
    assert.eq(rst.nodes.map((node) => node.host), progress.map((line) => line.host));
    assert.eq([0, 1], progress.map((line) => line.memberId));
    return progress.every((line) => rs.compareOpTimes(line.lastAppliedOpTime, last()) >= 0 && rs.compareOpTimes(line.optime, last()) >= 0);
}, () => tojson(shown({repl: 1}).repl.replicationProgress));
const [own, other] = [primary, secondary].map((node) => shown({repl: 1}).repl.replicationProgress.find((line) => line.host === node.host));
assert.eq([-1, -1], [own.heartbeatAppliedOpTime, own.heartbeatDurableOpTime].map((optime) => Number(optime.t)), "a member has no heartbeats of itself");
assert.gte(rs.compareOpTimes(other.heartbeatAppliedOpTime, other.heartbeatDurableOpTime), 0);

// Who waits for another member.
const waiters = () => Number(shown({}).metrics.repl.waiters.replication);
holdBehind(primary, [secondary]);
const writing = startParallelShell(() => {
    const write = {insert: "c", documents: [{_id: "waits"}], writeConcern: {w: 2, wtimeout: 60000}};
    assert.commandWorked(db.getSiblingDB("test").runCommand(write));
}, primary.port);
assert.soon(() => waiters() >= 1, () => `${waiters()} writes wait`);
letGo(secondary);
writing();
assert.soon(() => waiters() === 0, () => `${waiters()} writes wait`);

// From when to when the oplog goes, and how often its beginning was let go.
assert(!("oplog" in shown({})));
const oldest = primary.getDB("local").oplog.rs.find().sort({$natural: 1}).limit(1).next().ts;
const {oplog} = shown({oplog: 1});
assert.eq(["latestOptime", "earliestOptime"], Object.keys(oplog));
assert.gte(bsonWoCompare({t: oplog.earliestOptime}, {t: oldest}), 0);
assert.gte(bsonWoCompare({t: oplog.latestOptime}, {t: oldest}), 0);
for (const name of ["totalTimeTruncatingMicros", "truncateCount"]) {
    assert.gte(shown({}).oplogTruncation[name], 0, name);
}
assert.gt(shown({}).wiredTiger.log["log sync operations"], 0);

// A step-down by force, and one that is refused.
const forced = (node) => assert.commandWorked(node.adminCommand({serverStatus: 1})).metrics.commands.replSetStepDownWithForce;
assert.eq([0, 0], [forced(primary).total, forced(primary).failed].map(Number));
assert.commandFailedWithCode(secondary.adminCommand({replSetStepDown: 60, force: true}), ErrorCodes.NotWritablePrimary);
assert.eq([1, 1], [forced(secondary).total, forced(secondary).failed].map(Number));
assert.commandWorked(primary.adminCommand({replSetStepDown: 60, force: true}));
assert.eq([1, 0], [forced(primary).total, forced(primary).failed].map(Number));
rst.stopSet();
