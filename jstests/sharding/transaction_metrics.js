/**
 * A router counts the transactions that go through it: how many there are, how they were committed, why they were aborted; and
 * writes a line about a slow one into its log.
 * It fails if a kind of commit is counted as another, if a cause is missing, or if the counters do not add up.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, jsTestName(), {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
const admin = db.getSiblingDB("admin");
const session = db.getMongo().startSession();
const inSession = session.getDatabase(coll.getDB().getName())[coll.getName()];
const status = () => {
    const t = assert.commandWorked(admin.runCommand({serverStatus: 1})).transactions;
    assert.eq(t.currentOpen, t.currentActive + t.currentInactive, tojson(t));
    assert.eq(t.totalStarted, t.totalCommitted + t.totalAborted + t.currentOpen, tojson(t));
    return t;
};
const number = (n) => Number(n === undefined ? 0 : n);
/** How often each kind of commit was begun and has succeeded since `before`. */
const commits = (before) => {
    const now = status(), grown = {};
    for (const kind of Object.keys(now.commitTypes)) {
        const [a, b] = [before.commitTypes[kind], now.commitTypes[kind]];
        const [initiated, successful] = [b.initiated - a.initiated, b.successful - a.successful].map(Number);
        if (initiated + successful > 0) {
            grown[kind] = [initiated, successful];
            assert.gte(b.successfulDurationMicros, a.successfulDurationMicros + (successful > 0 ? 1 : 0), kind);
        }
    }
    return grown;
};
/** Counters that are larger than in `before`, and by how much. */
const grown = (before) => {
    const now = status();
    return ["totalStarted", "totalCommitted", "totalAborted", "totalContactedParticipants", "totalParticipantsAtCommit",
        "totalRequestsTargeted"].map((name) => Number(now[name] - before[name]));
};
const left = (x) => inSession.update({x: -1}, {$set: {a: x}});
const right = (x) => inSession.update({x: 1}, {$set: {a: x}});
const read = () => inSession.find().itcount();

assert.eq(["noShards", "singleShard", "singleWriteShard", "readOnly", "twoPhaseCommit", "recoverWithToken"],
    Object.keys(status().commitTypes));
for (const [kind, statements, shards] of [
    ["singleShard", [left], 1], ["readOnly", [read], 2], ["singleWriteShard", [read, left], 2],
    ["twoPhaseCommit", [left, right], 2],
]) {
    const before = status();
    session.startTransaction();
    statements.forEach((statement) => statement(kind));
    const open = () => [status().currentOpen, status().currentInactive].map(Number);
    assert.eq([before.currentOpen + 1, before.currentInactive + 1], open(), kind);
    const [idle] = admin.aggregate([{$currentOp: {localOps: true}}, {$match: {type: "idleSession", "lsid.id": session.getSessionId().id}}])
        .toArray();
    const shown = idle.transaction;
    assert.eq(shards, shown.numParticipants, tojson(idle));
    assert.eq(shown.numReadOnlyParticipants + shown.numNonReadOnlyParticipants, shards, tojson(idle));
    assert.eq([true], shown.participants.map((p) => p.coordinator).filter((c) => c), tojson(idle));
    assert.eq(kind === "readOnly" ? shards : shards - statements.filter((s) => s !== read).length, shown.numReadOnlyParticipants);
    assert.eq(NumberLong(session.getTxnNumber_forTesting()), shown.parameters.txnNumber);
    assert.eq("string", typeof shown.startWallClockTime);
    assert.commandWorked(session.commitTransaction_forTesting());
    // A commit that is repeated is the same commit.
    const field = {lsid: session.getSessionId(), txnNumber: session.getTxnNumber_forTesting(), autocommit: false};
    assert.commandWorked(admin.runCommand(Object.assign({commitTransaction: 1}, field)));
    assert.eq({[kind]: [1, 1]}, commits(before), kind);
    const [started, committed, aborted, contacted, atCommit, targeted] = grown(before);
    assert.eq([1, 1, 0, shards, shards], [started, committed, aborted, contacted, atCommit], kind);
    assert.gt(targeted, shards, kind);
}

// What another router has begun is committed by its token.
let before = status();
const recovered = Object.assign({commitTransaction: 1, recoveryToken: {recoveryShardId: first}},
    {lsid: assert.commandWorked(admin.runCommand({startSession: 1})).id, txnNumber: NumberLong(7), autocommit: false});
assert.commandFailedWithCode(admin.runCommand(recovered), ErrorCodes.NoSuchTransaction);
assert.eq({recoverWithToken: [1, 0]}, commits(before));

// Aborts by cause.
const cause = (name) => number((status().abortCause || {})[name]);
const aborts = (name, f) => {
    const [total, of_cause] = [number(status().totalAborted), cause(name)];
    f();
    assert.eq([total + 1, of_cause + 1], [number(status().totalAborted), cause(name)], name);
};
aborts("abort", () => {
    session.startTransaction();
    left(2);
    assert.commandWorked(session.abortTransaction_forTesting());
});
aborts("DuplicateKey", () => {
    session.startTransaction();
    assert.writeErrorWithCode(inSession.insert({_id: 1, x: -1}), ErrorCodes.DuplicateKey);
    session.abortTransaction_forTesting();
});
aborts("OperationNotSupportedInTransaction", () => {
    session.startTransaction();
    left(3);
    const indexes = [{key: {b: 1}, name: "b_1"}];
    assert.commandFailedWithCode(inSession.runCommand("createIndexes", {indexes}), 263);
    session.abortTransaction_forTesting();
});
aborts("Interrupted", () => {
    session.startTransaction();
    left(4);
    const total = status().totalAborted;
    assert.commandWorked(admin.runCommand({killSessions: [session.getSessionId()]}));
    assert.soon(() => status().totalAborted > total);
    session.abortTransaction_forTesting();
});

// The line about a slow one.
const was = assert.commandWorked(admin.runCommand({profile: -1}));
const id = tojson(session.getSessionId().id).match(/[0-9a-f-]{36}/)[0];
const lines = () => assert.commandWorked(admin.runCommand({getLog: "global"})).log.map((line) => JSON.parse(line))
    .filter((line) => line.id === 51805 && line.attr.parameters.lsid.id.$uuid === id);
assert.commandWorked(admin.runCommand({profile: 0, slowms: 20}));
assert.eq(0, lines().length);
session.startTransaction({readConcern: {level: "snapshot"}});
left(5), right(5);
sleep(30);
assert.commandWorked(session.commitTransaction_forTesting());
session.startTransaction();
left(6);
sleep(30);
assert.commandWorked(session.abortTransaction_forTesting());
assert.commandWorked(admin.runCommand({profile: 0, slowms: was.slowms}));
const [committed, aborted] = lines().map((line) => (assert.eq(["TXN", "transaction"], [line.c, line.msg]), line.attr));
assert.eq(2, lines().length);
assert.eq(["committed", "twoPhaseCommit", 2, first],
    [committed.terminationCause, committed.commitType, number(committed.numParticipants), committed.coordinator], tojson(committed));
assert("globalReadTimestamp" in committed, tojson(committed));
assert.eq("snapshot", committed.parameters.readConcern.level);
assert.gt(committed.commitDurationMicros, 0);
for (const attr of [committed, aborted]) {
    assert.gte(attr.timeInactiveMicros, 25000, tojson(attr));
    assert.gt(attr.timeActiveMicros, 0, tojson(attr));
    assert.eq(attr.durationMillis, Math.floor((attr.timeActiveMicros + attr.timeInactiveMicros) / 1000), tojson(attr));
}
assert.eq(["aborted", "abort", 1, undefined],
    [aborted.terminationCause, aborted.abortCause, aborted.numParticipants, aborted.commitType], tojson(aborted));
session.endSession();
