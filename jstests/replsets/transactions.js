/**
 * Applications rely on transactions: several collections seen at one moment, all writes or none, and errors by which a driver
 * knows what to run again.
 * It fails if a transaction sees what was committed after its first statement, if a second writer is not refused at once,
 * if a commit leaves anything else than one applyOps entry, or if an ended transaction takes another statement.
 *
 * @tags: [requires_replication]
 */
const name = jsTestName();
const mongo = db.getMongo();
assert.commandWorked(db.dropDatabase());
assert.commandWorked(db[name].insert([{_id: 1, x: 0}, {_id: 2, x: 0}]));
assert.commandWorked(db.other.insert({_id: 1}));

/** A session's transactions, statement by statement. */
function client() {
    const lsid = assert.commandWorked(db.adminCommand({startSession: 1})).id;
    let number = 0, first = false;
    const field = () => ({lsid, txnNumber: NumberLong(number), autocommit: false});
    return {
        begin() { number += 1; first = true; return this; },
        run(command) {
            const extra = first ? {startTransaction: true} : {};
            first = false;
            return db.runCommand(Object.assign({}, command, field(), extra));
        },
        end(command, more) {
            return db.adminCommand(Object.assign({[command]: 1}, field(), more || {}));
        },
        lsid, number: () => number,
    };
}
const labels = (reply) => reply.errorLabels || [];
const set = (id, x) => ({update: name, updates: [{q: {_id: id}, u: {$set: {x}}}]});

// One moment for all collections, and one's own writes.
const a = client(), b = client();
assert.commandWorked(a.begin().run({find: name}));
assert.commandWorked(db.other.insert({_id: 2}));
assert.commandWorked(a.run({insert: "other", documents: [{_id: 3}]}));
const seen = assert.commandWorked(a.run({find: "other", sort: {_id: 1}})).cursor.firstBatch;
assert.eq([{_id: 1}, {_id: 3}], seen);
assert.eq(2, db.other.find().itcount());
assert.commandWorked(a.end("commitTransaction", {writeConcern: {w: "majority"}}));
assert.eq(3, db.other.find().itcount());
// A repeated commit is answered like the first.
assert.commandWorked(a.end("commitTransaction"));
assert.commandFailedWithCode(a.end("abortTransaction"), ErrorCodes.TransactionCommitted);
assert.commandFailedWithCode(a.run({find: name}), ErrorCodes.TransactionCommitted);

// A transaction's first statement names a cluster time or nothing: an entry of one member's log says nothing to others.
const optime = {ts: Timestamp(1, 1), t: NumberLong(1)};
assert.commandFailedWithCode(a.begin().run({find: name, readConcern: {level: "local", afterOpTime: optime}}), 72);

// The log holds one entry.
assert.commandWorked(a.begin().run(set(1, 5)));
assert.commandWorked(a.run({delete: "other", deletes: [{q: {_id: 3}, limit: 1}]}));
assert.commandWorked(a.end("commitTransaction", {writeConcern: {w: "majority"}}));
const oplog = mongo.getDB("local").oplog.rs;
const entry = oplog.find({"lsid.id": a.lsid.id}).sort({$natural: -1}).limit(1).next();
assert.eq("c", entry.op);
assert.eq("admin.$cmd", entry.ns);
assert.eq(["u", "d"], entry.o.applyOps.map((o) => o.op));
assert.eq(NumberLong(a.number()), entry.txnNumber);
const shown = mongo.getDB("config").transactions.findOne({"_id.id": a.lsid.id});
assert.eq("committed", shown.state);
assert.eq(0, timestampCmp(entry.ts, shown.lastWriteOpTime.ts));

// The first updater wins; the other is told at once that it may try the whole again.
assert.commandWorked(a.begin().run(set(2, 1)));
const refused = assert.commandFailedWithCode(b.begin().run(set(2, 2)), ErrorCodes.WriteConflict);
assert.eq(["TransientTransactionError"], labels(refused));
const gone = assert.commandFailedWithCode(b.end("commitTransaction"), ErrorCodes.NoSuchTransaction);
assert.eq(["TransientTransactionError"], labels(gone));
// A write outside transactions waits instead, as long as it may.
const waits = Object.assign(set(2, 3), {maxTimeMS: 100});
assert.commandFailedWithCode(db.runCommand(waits), ErrorCodes.MaxTimeMSExpired);
assert.commandWorked(a.end("abortTransaction"));
assert.commandWorked(db.runCommand(set(2, 3)));

// A failed statement aborts the transaction.
const double = a.begin().run({insert: name, documents: [{_id: 9}, {_id: 1}, {_id: 10}], ordered: false});
assert.eq(1, double.writeErrors.length);
assert.commandFailedWithCode(a.run({find: name}), ErrorCodes.NoSuchTransaction);
assert.eq(0, db[name].find({_id: {$gte: 9}}).itcount());

// A cursor belongs to its transaction.
const cursor = assert.commandWorked(a.begin().run({find: name, batchSize: 1})).cursor;
const more = {getMore: cursor.id, collection: name};
assert.commandFailedWithCode(db.runCommand(Object.assign({}, more, {lsid: a.lsid})), 50740);
assert.eq(1, assert.commandWorked(a.run(more)).cursor.nextBatch.length);
assert.commandWorked(a.end("commitTransaction"));

// What no transaction does.
const no = (command, code) => {
    assert.commandFailedWithCode(a.begin().run(command), code);
};
no({count: name}, ErrorCodes.OperationNotSupportedInTransaction);
no({drop: name}, ErrorCodes.OperationNotSupportedInTransaction);
no({aggregate: name, pipeline: [{$out: "out"}], cursor: {}}, ErrorCodes.OperationNotSupportedInTransaction);
no({find: name, readConcern: {level: "linearizable"}}, ErrorCodes.InvalidOptions);
no({insert: name, documents: [{}], writeConcern: {w: 1}}, ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(db.adminCommand({commitTransaction: 1}), ErrorCodes.CommandFailed);

// Collections and indexes made within it are there with the commit.
assert.commandWorked(a.begin().run({create: "made"}));
assert.commandWorked(a.run({createIndexes: "made", indexes: [{key: {x: 1}, name: "x_1"}]}));
assert.eq(0, db.getCollectionInfos({name: "made"}).length);
assert.commandWorked(a.end("commitTransaction"));
assert.eq(2, db.made.getIndexes().length);
// One that is there is not made again, though outside transactions that is no error.
assert.commandWorked(db.runCommand({create: "made"}));
no({create: "made"}, ErrorCodes.NamespaceExists);
assert.commandFailedWithCode(a.end("commitTransaction"), ErrorCodes.NoSuchTransaction);

// Killing its session ends it, and currentOp shows it before.
assert.commandWorked(a.begin().run(set(1, 8)));
const idle = db.getSiblingDB("admin").aggregate([{$currentOp: {idleSessions: true}},
    {$match: {type: "idleSession", "lsid.id": a.lsid.id}}]).toArray();
assert.eq(1, idle.length);
assert.eq(["type", "host", "desc", "connectionId", "client", "appName", "clientMetadata", "lsid", "transaction", "waitingForLock",
    "active", "locks"], Object.keys(idle[0]));
assert.eq({txnNumber: NumberLong(a.number()), autocommit: false, readConcern: {level: "local", provenance: "implicitDefault"}},
    idle[0].transaction.parameters);
for (const date of ["startWallClockTime", "expiryTime"]) {
    assert(/^\d{4}-\d\d-\d\dT.*\+00:00$/.test(idle[0].transaction[date]), tojson(idle[0]));
}
assert.commandWorked(db.runCommand({killSessions: [a.lsid]}));
assert.commandFailedWithCode(a.end("commitTransaction"), ErrorCodes.NoSuchTransaction);
const status = db.serverStatus().transactions;
assert.eq(status.currentOpen, status.currentActive + status.currentInactive);
assert.eq(status.totalStarted, status.totalCommitted + status.totalAborted + status.currentOpen);

// What ends a transaction takes nothing that it does not know, and is no retryable write.
for (const name of ["commitTransaction", "abortTransaction"]) {
    const end = (more) => db.adminCommand(Object.assign({[name]: 1}, more));
    assert.commandFailedWithCode(end({query: {}}), 40415);
    assert.commandFailedWithCode(end({TxnNumber: NumberLong(1)}), 40415);
    assert.commandFailedWithCode(end({lsid: {id: UUID()}, txnNumber: NumberLong(1)}), 50768);
    assert.commandFailedWithCode(end({}), 125);
}
