/**
 * A primary that writes faster than its majority can follow slows down, so that there is never much to roll back. Without a lag
 * nothing waits. It fails if writes go on at full speed while the majority point stands still, if a write that waits cannot be
 * killed or is not shown as waiting, or if anything waits once the majority is back or flow control is off.
 *
 * @tags: [requires_own_servers]
 */
import {insert, letGo, holdBehind, startedSet} from "jstests/replsets/libs/members.js";

const parameters = {flowControlMinTicketsPerSecond: 1, periodicNoopIntervalSecs: 1};
const rst = startedSet(3, {settings: {electionTimeoutMillis: 60000}, more: {nodeOptions: {setParameter: parameters}}});
const primary = rst.getPrimary();
const admin = primary.getDB("admin");
const status = () => assert.commandWorked(admin.runCommand({serverStatus: 1})).flowControl;
const set = (name, value) => assert.commandWorked(admin.runCommand({setParameter: 1, [name]: value}));

assert.commandWorked(insert(primary, [{_id: "before"}], {w: 3}));
let shown = status();
assert.eq([true, false, 0, 1000000000], [shown.enabled, shown.isLagged, shown.isLaggedCount, shown.targetRateLimit], tojson(shown));
assert.eq(["timeAcquiringMicros", "locksPerKiloOp", "sustainerRate", "isLaggedTimeMicros"].filter((name) => !(name in shown)), []);
assert.commandFailedWithCode(admin.runCommand({setParameter: 1, flowControlTargetLagSeconds: 0}), ErrorCodes.BadValue);
// Only now: on a busy machine a set that has just begun lags by a second.
set("flowControlTargetLagSeconds", 1);

// The others take nothing in: at most so many writes a second.
const others = rst.getSecondaries();
holdBehind(primary, others);
assert.commandWorked(insert(primary, [{_id: "ahead"}]));
assert.soon(() => status().isLagged, () => tojson(status()));
assert.soon(() => status().targetRateLimit === 1, () => tojson(status()));
const before = status().timeAcquiringMicros;
for (let i = 0; i < 3; i++) {
    assert.commandWorked(insert(primary, [{_id: i}]));
}
assert.gt(status().timeAcquiringMicros, before);
shown = status();
assert.eq(1, shown.isLaggedCount);
assert.gt(shown.isLaggedTimeMicros, 0);

// Many writers: most of them wait, are shown so, and can be killed. Reads do not wait.
const writers = [];
for (let i = 0; i < 3; i++) {
    writers.push(startParallelShell(funWithArgs((n) => {
        for (let i = 0; i < 200; i++) {
            assert.commandWorked(db.runCommand({insert: "c", documents: [{writer: n}], writeConcern: {w: 1}}));
            if (db.stop.findOne()) {
                break;
            }
        }
    }, i), primary.port));
}
const waiting = () => admin.aggregate([{$currentOp: {}}, {$match: {waitingForFlowControl: true}}]).toArray();
assert.soon(() => waiting().length > 1);
const command = {insert: "c", documents: [{_id: "too slow"}, {_id: "for it"}], maxTimeMS: 1};
assert.commandFailedWithCode(primary.getDB("test").runCommand(command), ErrorCodes.MaxTimeMSExpired);
assert.eq(0, primary.getDB("test").c.find({_id: "too slow"}).itcount());

// What is off limits nothing, though the others are still behind.
set("enableFlowControl", false);
assert.soon(() => status().targetRateLimit === 1000000000, () => tojson(status()));
assert.eq([false, false], [status().enabled, status().isLagged]);
assert.commandWorked(primary.getDB("test").runCommand({insert: "stop", documents: [{}], writeConcern: {w: 1}}));
writers.forEach((join) => join());
set("enableFlowControl", true);
assert.soon(() => status().targetRateLimit === 1, () => tojson(status()));

// With the majority back the limit rises.
others.forEach(letGo);
assert.soon(() => !status().isLagged, () => tojson(status()));
assert.soon(() => status().targetRateLimit > 1000, () => tojson(status()));
assert.commandWorked(insert(primary, [{_id: "after"}], {w: 3}));
assert.eq(2, status().isLaggedCount);

// A member that leads no longer limits nothing.
rst.stepUp(others[0]);
assert.soon(() => status().targetRateLimit === 1000000000, () => tojson(status()));
rst.checkReplicatedDataHashes();
rst.stopSet();
