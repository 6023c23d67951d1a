/**
 * Numbered writes of a session are done once and in order, and only such writes may be numbered as can be repeated.
 * It fails if a repeated write is done again, an old number is taken, or a write of many documents is numbered.
 *
 * @tags: [requires_replication]
 */
const coll = db.retryable_writes;
coll.drop();
const name = coll.getName();
const lsid = {id: UUID()};
let number = 0;
const once = (command, more) => db.runCommand(
    Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(number)}, more));
const twice = (command) => {
    number++;
    return [assert.commandWorked(once(command)), assert.commandWorked(once(command))];
};

let [one, two] = twice({insert: name, documents: [{_id: 1, v: 0}, {_id: 2, v: 0}]});
assert.eq([2, 2], [one.n, two.n]);
assert.eq([0, 1], two.retriedStmtIds);
assert(!("retriedStmtIds" in one), tojson(one));
[one, two] = twice({update: name, updates: [{q: {_id: 1}, u: {$inc: {v: 1}}}, {q: {_id: 9}, u: {$inc: {v: 1}}}]});
assert.eq([1, 1], [one.nModified, two.nModified]);
assert.eq(1, coll.findOne({_id: 1}).v);
[one, two] = twice({findAndModify: name, query: {_id: 1}, update: {$inc: {v: 1}}, new: true});
assert.eq(one.value, two.value);
assert.eq(2, coll.findOne({_id: 1}).v);
[one, two] = twice({findAndModify: name, query: {_id: 5}, update: {$set: {v: 5}}, upsert: true});
assert.docEq(one.lastErrorObject, two.lastErrorObject);
assert.eq(5, two.lastErrorObject.upserted);
[one, two] = twice({delete: name, deletes: [{q: {v: {$gte: 0}}, limit: 1}]});
assert.eq([1, 1], [one.n, two.n]);
assert.eq(2, coll.find().itcount());

// A write that failed is tried again, since nothing was done.
number++;
assert.eq(11000, once({insert: name, documents: [{_id: 2}]}).writeErrors[0].code);
assert.commandWorked(coll.remove({_id: 2}));
assert.eq(1, assert.commandWorked(once({insert: name, documents: [{_id: 2}]})).n);

// Another kind of command under the same number.
number++;
assert.commandWorked(once({findAndModify: name, query: {_id: 2}, update: {$inc: {v: 1}}, new: true}));
assert.commandFailedWithCode(once({findAndModify: name, query: {_id: 2}, update: {$inc: {v: 1}}, new: false}), [40611, 40612]);
assert.commandFailedWithCode(once({findAndModify: name, query: {_id: 2}, remove: true}), 40606);

// Old numbers and negative ones.
assert.commandFailedWithCode(once({insert: name, documents: [{_id: 50}]}, {txnNumber: NumberLong(1)}), 225);
assert.commandFailedWithCode(once({insert: name, documents: [{_id: 50}]}, {txnNumber: NumberLong(-1)}), 72);
assert.commandFailed(once({insert: name, documents: [{_id: 50}]}, {txnNumber: 5.5}));

// What cannot be repeated.
number++;
assert.commandFailedWithCode(once({update: name, updates: [{q: {}, u: {$set: {m: 1}}, multi: true}]}), 72);
assert.commandFailedWithCode(once({delete: name, deletes: [{q: {}, limit: 0}]}), 72);
assert.commandFailedWithCode(once({find: name}), 50768);
assert.eq(0, coll.find({_id: 50}).itcount());

// Two sessions do not know of each other.
for (const id of [70, 71]) {
    assert.commandWorked(db.runCommand(
        {insert: name, documents: [{_id: id}], lsid: {id: UUID()}, txnNumber: NumberLong(1)}));
}
assert.eq(2, coll.find({_id: {$gte: 70}}).itcount());
coll.drop();
