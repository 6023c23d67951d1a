/**
 * A transaction through a router is one on all shards it touches: its writes are seen together or not at all, and another
 * router can say what became of it.
 * It fails if a shard commits alone, if a router does not tell who has written, or if an abort leaves a shard's part open.
 *
 * @tags: [requires_sharding]
 */
const shards = db.adminCommand({listShards: 1}).shards.map((s) => s._id);
const name = jsTestName(), ns = `${db.getName()}.${name}`;
if (shards.length < 2) {
    quit();
}
db[name].drop();
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {k: 1}}));
assert.commandWorked(db.adminCommand({split: ns, middle: {k: 0}}));
assert.commandWorked(db.adminCommand({moveChunk: ns, find: {k: -1}, to: shards[0]}));
assert.commandWorked(db.adminCommand({moveChunk: ns, find: {k: 1}, to: shards[1]}));
assert.commandWorked(db[name].insert([{_id: 1, k: -1, x: 0}, {_id: 2, k: 1, x: 0}]));

const lsid = assert.commandWorked(db.adminCommand({startSession: 1})).id;
let number = 0, first = false;
const field = () => ({lsid, txnNumber: NumberLong(number), autocommit: false});
const begin = () => { number += 1; first = true; };
const run = (command) => {
    const extra = first ? {startTransaction: true} : {};
    first = false;
    return db.runCommand(Object.assign({}, command, field(), extra));
};
const end = (command, more) => db.adminCommand(Object.assign({[command]: 1}, field(), more || {}));
const set = (k, x) => ({update: name, updates: [{q: {k}, u: {$set: {x}}}]});
const values = () => db[name].find().sort({k: 1}).toArray().map((d) => d.x);

// Two shards, two-phase: nothing is seen before the commit, everything after it.
begin();
let reply = assert.commandWorked(run({find: name, filter: {k: -1}}));
assert.eq({}, reply.recoveryToken);
reply = assert.commandWorked(run(set(1, 5)));
assert.eq(shards[1], reply.recoveryToken.recoveryShardId);
const token = reply.recoveryToken;
assert(!("readOnly" in reply), tojson(reply));
assert.commandWorked(run(set(-1, 6)));
assert.eq([0, 0], values());
assert.eq([6, 5], assert.commandWorked(run({find: name, sort: {k: 1}})).cursor.firstBatch.map((d) => d.x));
assert.commandWorked(end("commitTransaction", {writeConcern: {w: "majority"}}));
assert.eq([6, 5], values());
assert.commandWorked(end("commitTransaction", {recoveryToken: token}));

// An abort reaches every shard: their records are free again.
begin();
assert.commandWorked(run(set(-1, 7)));
assert.commandWorked(run(set(1, 7)));
assert.commandWorked(end("abortTransaction"));
assert.commandWorked(db.runCommand(Object.assign(set(1, 8), {maxTimeMS: 5000})));
assert.commandWorked(db.runCommand(Object.assign(set(-1, 8), {maxTimeMS: 5000})));
assert.commandFailedWithCode(end("commitTransaction"), ErrorCodes.NoSuchTransaction);

// A conflict on one shard ends the transaction on the other.
begin();
assert.commandWorked(run({find: name, filter: {k: 1}}));
assert.commandWorked(run(set(-1, 9)));
assert.commandWorked(db.runCommand(set(1, 10)));
const refused = assert.commandFailedWithCode(run(set(1, 11)), ErrorCodes.WriteConflict);
assert.eq(["TransientTransactionError"], refused.errorLabels);
assert.commandWorked(db.runCommand(Object.assign(set(-1, 12), {maxTimeMS: 5000})));
assert.eq([12, 10], values());

// A transaction that nobody has sent a statement of; one that only read; an older number.
begin();
assert.commandFailedWithCode(end("commitTransaction"), 50940);
begin();
assert.commandWorked(run({find: name}));
assert.commandWorked(end("commitTransaction"));
number -= 1;
assert.commandFailedWithCode(run({find: name}), ErrorCodes.TransactionTooOld);
number += 1;

// What concerns many shards is done on all of them, once.
begin();
assert.eq(2, assert.commandWorked(run({update: name, updates: [{q: {}, u: {$inc: {x: 1}}, multi: true}]})).nModified);
assert.eq(1, assert.commandWorked(run({delete: name, deletes: [{q: {_id: 2}, limit: 1}]})).n);
assert.commandWorked(end("commitTransaction"));
assert.eq([13], values());

// A transaction's cursor goes on in the transaction alone; a getMore from outside does no harm.
begin();
assert.commandWorked(run({insert: name, documents: [{_id: 3, k: 3, x: 13}]}));
const cursor = assert.commandWorked(run({find: name, sort: {k: 1}, batchSize: 0})).cursor;
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: name, lsid}), 50803);
assert.eq([13, 13], assert.commandWorked(run({getMore: cursor.id, collection: name})).cursor.nextBatch.map((d) => d.x));
assert.commandWorked(end("commitTransaction"));
