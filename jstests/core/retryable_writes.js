/**
 * A write that is sent twice with one number is done once, and both senders get the same answer.
 * Fails when the second delivery writes again or answers otherwise, or an older number is taken.
 *
 * @tags: [requires_replication]
 */
const coll = db.retryable_writes;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, v: 1}, {_id: 2, v: 1}, {_id: 3, v: 1}]));
const name = coll.getName();
const lsid = {id: UUID()};
let number = 0;

function twice(command) {
    number++;
    const sent = Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(number)});
    const first = assert.commandWorked(db.runCommand(sent));
    const second = assert.commandWorked(db.runCommand(sent));
    return [first, second];
}

let [first, second] = twice({insert: name, documents: [{_id: 10}, {_id: 11}]});
assert.eq([2, 2], [first.n, second.n]);
assert.eq([NumberInt(0), NumberInt(1)].map(Number), second.retriedStmtIds.map(Number));
assert.eq(5, coll.find().itcount());

[first, second] = twice({update: name, updates: [{q: {_id: 1}, u: {$inc: {v: 1}}}, {q: {_id: 20}, u: {$inc: {v: 5}}, upsert: true}]});
assert.eq([first.n, first.nModified, first.upserted], [second.n, second.nModified, second.upserted]);
assert.eq(2, coll.findOne({_id: 1}).v);
assert.eq(5, coll.findOne({_id: 20}).v);

[first, second] = twice({delete: name, deletes: [{q: {v: 1}, limit: 1}]});
assert.eq([1, 1], [first.n, second.n]);
assert.eq(1, coll.find({v: 1}).itcount());

[first, second] = twice({findAndModify: name, query: {_id: 1}, update: {$inc: {v: 10}}, new: true});
assert.eq({_id: 1, v: 12}, first.value);
assert.eq(first.value, second.value);
assert.eq(12, coll.findOne({_id: 1}).v);

[first, second] = twice({findAndModify: name, query: {_id: 10}, remove: true});
assert.eq({_id: 10}, second.value);

// Writes of many documents cannot be repeated, and numbers only grow.
number++;
assert.commandFailedWithCode(
    db.runCommand({update: name, updates: [{q: {}, u: {$inc: {v: 1}}, multi: true}], lsid: lsid, txnNumber: NumberLong(number)}),
    ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(db.runCommand({delete: name, deletes: [{q: {}, limit: 0}], lsid: lsid, txnNumber: NumberLong(++number)}),
                             ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 99}], lsid: lsid, txnNumber: NumberLong(1)}),
                             ErrorCodes.TransactionTooOld);
assert.eq(null, coll.findOne({_id: 99}));

// Statement ids are one for each statement.
const numbered = extra => db.runCommand(Object.assign(
    {insert: name, documents: [{_id: 98}, {_id: 99}], lsid: lsid, txnNumber: NumberLong(number + 1)}, extra));
assert.commandFailedWithCode(numbered({stmtIds: [NumberInt(0)]}), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(numbered({stmtIds: [NumberInt(0), NumberInt(1)], stmtId: NumberInt(0)}), ErrorCodes.InvalidOptions);
assert.eq(0, coll.find({_id: {$in: [98, 99]}}).itcount());
assert.commandWorked(numbered({stmtIds: [NumberInt(0), NumberInt(1)]}));
