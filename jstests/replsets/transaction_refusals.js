/**
 * What a transaction is refused, by the real server's codes. It fails if a read names a time that nobody has seen and takes the clock there,
 * if an index is built over what a transaction has inserted, or if a write outside of it takes its number.
 *
 * @tags: [requires_replication]
 */
const name = jsTestName();
assert.commandWorked(db.dropDatabase());
assert.commandWorked(db[name].insert({_id: 1}));
const lsid = assert.commandWorked(db.adminCommand({startSession: 1})).id;
let number = 0;
const begin = (command) => {
    number += 1;
    return db.runCommand(Object.assign({}, command, {lsid, txnNumber: NumberLong(number), autocommit: false, startTransaction: true}));
};
const go = (command) => db.runCommand(Object.assign({}, command, {lsid, txnNumber: NumberLong(number), autocommit: false}));
const end = (command) => db.adminCommand(Object.assign({}, command, {lsid, txnNumber: NumberLong(number), autocommit: false}));

// A time far ahead.
const now = assert.commandWorked(db.runCommand({ping: 1})).operationTime;
const ahead = Timestamp(now.t + 1000, 1);
const readAhead = {find: name, readConcern: {level: "snapshot", atClusterTime: ahead}};
assert.commandFailedWithCode(begin(readAhead), ErrorCodes.InvalidOptions);
const after = assert.commandWorked(db[name].runCommand({insert: name, documents: [{_id: 2}]})).operationTime;
assert.lt(after.t, ahead.t);

// Indexes of a collection that the transaction has made and filled.
assert.commandWorked(begin({create: "made"}));
assert.commandWorked(go({createIndexes: "made", indexes: [{key: {a: 1}, name: "a_1"}]}));
assert.commandWorked(go({insert: "made", documents: [{_id: 1}]}));
assert.commandWorked(go({createIndexes: "made", indexes: [{key: {a: 1}, name: "a_1"}]}), "it is there already");
assert.commandFailedWithCode(go({createIndexes: "made", indexes: [{key: {b: 1}, name: "b_1"}]}),
                             ErrorCodes.OperationNotSupportedInTransaction);
assert.commandFailedWithCode(end({commitTransaction: 1}), ErrorCodes.NoSuchTransaction);
assert.eq([], db.getCollectionInfos({name: "made"}));

// The number of a transaction, without saying that it is one's.
const plain = () => db.runCommand({insert: name, documents: [{_id: 3}], lsid, txnNumber: NumberLong(number)});
assert.commandWorked(begin({insert: name, documents: [{_id: 4}]}));
assert.commandFailedWithCode(plain(), ErrorCodes.InvalidOptions);
assert.commandWorked(end({commitTransaction: 1}));
assert.commandFailedWithCode(plain(), ErrorCodes.InvalidOptions);
assert.eq(0, db[name].find({_id: 3}).itcount());

// Drivers send the end of a transaction again by the label.
const point = {failCommands: ["commitTransaction"], writeConcernError: {code: 91, errmsg: "x"}};
assert.commandWorked(begin({insert: name, documents: [{_id: 5}]}));
assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: {times: 1}, data: point}));
assert.eq(["RetryableWriteError"], end({commitTransaction: 1}).errorLabels);

// A lower limit holds for transactions that began before.
const was = db.adminCommand({setParameter: 1, transactionLifetimeLimitSeconds: 1}).was;
try {
    assert.commandWorked(begin({insert: name, documents: [{_id: 6}]}));
    assert.soon(() => db.serverStatus().transactions.currentOpen == 0, "not aborted in time", 10000);
} finally {
    assert.commandWorked(db.adminCommand({setParameter: 1, transactionLifetimeLimitSeconds: was}));
}
assert.commandFailedWithCode(end({commitTransaction: 1}), ErrorCodes.NoSuchTransaction);
