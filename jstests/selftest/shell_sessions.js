/**
 * Sessions: what they add to commands, what they refuse, how transactions begin and end. The commands are caught on
 * their way to the server, so that it needs no support for transactions. A session that forgot its number, or began a
 * transaction with every statement, would fail here.
 */
(function() {
"use strict";

const name = jsTestName();
db.getSiblingDB(name).dropDatabase();

/** A connection that notes every command and answers those that `answers` names itself. */
function recording(answers = {}) {
    const connection = new Mongo(db.getMongo().host);
    const sent = [];
    const send = connection.runCommand;
    connection.runCommand = function(database, command, options) {
        sent.push(Object.assign({}, command));
        const answer = answers[Object.keys(command)[0]];
        if (answer === undefined) return send.call(connection, database, command, options);
        return typeof answer === "function" ? answer(command) : Object.assign({}, answer);
    };
    return {connection, sent, last: () => sent[sent.length - 1]};
}

// Explicit sessions have an identity of their own; the default one is shared.
const first = db.getMongo().startSession(), second = db.getMongo().startSession();
assert.neq(first.getSessionId(), second.getSessionId());
assert(first.getOptions().isCausalConsistency());
assert(!db.getMongo().startSession({causalConsistency: false}).getOptions().isCausalConsistency());
const coll = first.getDatabase(name).shell_sessions;
assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}, {_id: 3}]));
assert.eq(3, coll.find().batchSize(1).itcount());
assert.eq(first, coll.getDB().getSession());
assert.eq(first, coll.getDB().getSiblingDB("other").getSession());
first.endSession();
assert(first.hasEnded());
assert.throws(() => coll.findOne());
first.endSession();

let client = recording();
let session = client.connection.startSession();
session.getDatabase(name).runCommand({ping: 1});
assert.eq(session.getSessionId(), client.last().lsid);
client.connection.getDB(name).runCommand({ping: 1});
assert.neq(session.getSessionId(), client.last().lsid);
assert.eq(client.connection._getDefaultSession().getSessionId(), client.last().lsid);
session.endSession();
assert.eq([session.getSessionId()], client.last().endSessions);

// Causal consistency: reads come after what the session has seen.
client = recording({ping: {ok: 1, operationTime: Timestamp(5, 1)}, find: {ok: 1, cursor: {id: NumberLong(0), ns: "a.b", firstBatch: []}}});
session = client.connection.startSession();
session.getDatabase(name).runCommand({ping: 1});
assert.eq(Timestamp(5, 1), session.getOperationTime());
session.advanceOperationTime(Timestamp(3, 1));
session.getDatabase(name).c.findOne();
assert.eq({afterClusterTime: Timestamp(5, 1)}, client.last().readConcern);
session.getDatabase(name).c.find().readConcern("majority").itcount();
assert.eq({level: "majority", afterClusterTime: Timestamp(5, 1)}, client.last().readConcern);
client.connection.getDB(name).c.findOne();
assert.eq(undefined, client.last().readConcern);

// The clock is gossiped, and never turned back.
const time = t => ({clusterTime: Timestamp(t, 0)});
client = recording({ping: {ok: 1, $clusterTime: time(9)}});
client.connection.adminCommand({ping: 1});
assert.eq(time(9), client.connection.getClusterTime());
client.connection.advanceClusterTime(time(4));
assert.eq(time(9), client.connection.getClusterTime());
client.connection.adminCommand({ping: 1});
assert.eq(time(9), client.last().$clusterTime);

// Retryable writes: a number, and one more try.
let tries = 0;
client = recording({
    hello: {ok: 1, setName: "rs"},
    insert: () => ++tries === 1 ? {ok: 0, code: ErrorCodes.NotWritablePrimary, errmsg: "not primary"} : {ok: 1, n: 1},
    update: {ok: 1, n: 1, nModified: 1},
    delete: {ok: 1, n: 1},
});
session = client.connection.startSession({retryWrites: true});
let target = session.getDatabase(name).c;
assert.eq(1, assert.commandWorked(target.insert({_id: 1})).nInserted);
const inserts = client.sent.filter(command => command.insert);
assert.eq(2, inserts.length);
assert.eq(NumberLong(0), inserts[0].txnNumber);
assert.eq(inserts[0].txnNumber, inserts[1].txnNumber);
target.updateOne({}, {$set: {a: 1}});
assert.eq(NumberLong(1), client.last().txnNumber);
target.updateMany({}, {$set: {a: 1}});
assert.eq(undefined, client.last().txnNumber);
target.remove({});
assert.eq(undefined, client.last().txnNumber);
target.deleteOne({});
assert.eq(NumberLong(2), client.last().txnNumber);
assert.commandWorked(client.connection.getDB(name).c.insert({_id: 1}));
assert.eq(undefined, client.last().txnNumber);

// Transactions.
const answered = {insert: {ok: 1, n: 1, recoveryToken: {shard: "s"}}, find: {ok: 1, cursor: {id: NumberLong(0), ns: "a.b", firstBatch: []}},
    commitTransaction: {ok: 1}, abortTransaction: {ok: 1}};
client = recording(answered);
session = client.connection.startSession();
target = session.getDatabase(name).c;
assert.throws(() => session.commitTransaction());
assert.throws(() => session.abortTransaction());
session.startTransaction({readConcern: {level: "snapshot"}, writeConcern: {w: "majority"}});
assert.throws(() => session.startTransaction());
target.insert({_id: 1});
let command = client.last();
assert.eq(true, command.startTransaction);
assert.eq(false, command.autocommit);
assert.eq(NumberLong(0), command.txnNumber);
assert.eq({level: "snapshot"}, command.readConcern);
assert.eq(undefined, command.writeConcern);
target.findOne();
command = client.last();
assert.eq(undefined, command.startTransaction);
assert.eq(false, command.autocommit);
assert.eq(undefined, command.readConcern);
session.commitTransaction();
command = client.last();
assert.eq(1, command.commitTransaction);
assert.eq({w: "majority"}, command.writeConcern);
assert.eq({shard: "s"}, command.recoveryToken);
assert.eq(NumberLong(0), command.txnNumber);
session.commitTransaction();
assert.throws(() => session.abortTransaction());
session.startTransaction();
target.insert({_id: 2});
assert.eq(NumberLong(1), client.last().txnNumber);
session.abortTransaction();
assert.eq(1, client.last().abortTransaction);
assert.throws(() => session.abortTransaction());
assert.throws(() => session.commitTransaction());
const before = client.sent.length;
session.startTransaction();
session.commitTransaction();
assert.eq(before, client.sent.length);
target.insert({_id: 3});
assert.eq(undefined, client.last().autocommit);

// withTransaction begins anew while the server says that an error is transient.
let attempts = 0;
const result = session.withTransaction(() => {
    target.insert({_id: 4});
    if (++attempts < 3) throw Object.assign(new Error("conflict"), {errorLabels: ["TransientTransactionError"]});
    return "done";
});
assert.eq("done", result);
assert.eq(3, attempts);
assert.eq(1, client.last().commitTransaction);
assert.throws(() => session.withTransaction(() => { throw new Error("final"); }));

// Without implicit sessions a command has none.
const plain = recording();
plain.connection._implicitSessions = false;
plain.connection.getDB(name).runCommand({ping: 1});
assert.eq(undefined, plain.last().lsid);
})();
