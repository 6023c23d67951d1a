/**
 * Every change of a document is one entry of the oplog, in the form that tools, backups and change streams read.
 * It fails if an entry lacks a field, a no-op writes one, or entries are out of order.
 *
 * @tags: [requires_replication]
 */
const oplog = db.getSiblingDB("local").getCollection("oplog.rs");
const coll = db.oplog_of_writes;
const ns = coll.getFullName();
coll.drop();
assert.commandWorked(db.createCollection(coll.getName()));
const uuid = db.getCollectionInfos({name: coll.getName()})[0].info.uuid;
const newest = () => oplog.find().sort({$natural: -1}).limit(1).next().ts;

/** The entries of this collection that `act` writes. */
function entries(act) {
    const before = newest();
    act();
    const found = oplog.find({ts: {$gt: before}, ns: {$in: [ns, "admin.$cmd"]}}).sort({$natural: 1}).toArray();
    found.forEach((entry) => {
        assert(entry.ts instanceof Timestamp, tojson(entry));
        assert(entry.t instanceof NumberLong, tojson(entry));
        assert.eq(NumberLong(2), entry.v, tojson(entry));
        assert(entry.wall instanceof Date, tojson(entry));
        assert(!("h" in entry), tojson(entry));
    });
    return found;
}
function only(act, op) {
    const found = entries(act);
    assert.eq(1, found.length, tojson(found));
    const [entry] = found;
    assert.eq(op, entry.op);
    assert.eq(ns, entry.ns);
    assert.eq(uuid, entry.ui);
    return entry;
}

let entry = only(() => assert.commandWorked(coll.insert({_id: 1, a: 1})), "i");
assert.docEq({_id: 1, a: 1}, entry.o);
assert.docEq({_id: 1}, entry.o2);
assert(!("txnNumber" in entry), tojson(entry));

entry = only(() => assert.commandWorked(coll.update({_id: 1}, {$set: {a: 2}})), "u");
assert.docEq({_id: 1}, entry.o2);
entry = only(() => assert.commandWorked(coll.update({_id: 1}, {whole: true})), "u");
assert.docEq({_id: 1}, entry.o2);
assert.docEq({_id: 1, whole: true}, entry.o);
entry = only(() => assert.commandWorked(coll.update({_id: 2}, {$set: {a: 1}}, {upsert: true})), "i");
assert.docEq({_id: 2, a: 1}, entry.o);
entry = only(() => coll.findAndModify({query: {_id: 2}, update: {$inc: {a: 1}}}), "u");
assert.docEq({_id: 2}, entry.o2);
entry = only(() => assert.commandWorked(coll.remove({_id: 2})), "d");
assert.docEq({_id: 2}, entry.o);
entry = only(() => coll.findAndModify({query: {_id: 1}, remove: true}), "d");
assert.docEq({_id: 1}, entry.o);

// What changes nothing writes nothing.
assert.commandWorked(coll.insert({_id: 3, a: 1}));
assert.eq([], entries(() => assert.commandWorked(coll.update({_id: 3}, {$set: {a: 1}}))));
assert.eq([], entries(() => assert.commandWorked(coll.update({_id: 99}, {$set: {a: 1}}))));
assert.eq([], entries(() => assert.commandWorked(coll.remove({_id: 99}))));
assert.eq([], entries(() => assert.commandFailedWithCode(coll.insert({_id: 3}), 11000)));

// Many documents: each has its own entry, in the order of the change.
let found = entries(() => assert.commandWorked(coll.update({}, {$set: {m: 1}}, {multi: true})));
assert.eq(["u"], found.map((e) => e.op));
found = entries(() => [4, 5, 6].forEach((id) => assert.commandWorked(coll.insert({_id: id}))));
assert.eq([4, 5, 6], found.map((e) => e.o._id));
found = entries(() => assert.commandWorked(coll.remove({})));
assert.sameMembers([3, 4, 5, 6], found.map((e) => e.o._id));

// A retryable write names its session, and the one before it.
const lsid = {id: UUID()};
const retryable = (n, id) => assert.commandWorked(db.runCommand(
    {insert: coll.getName(), documents: [{_id: id}], lsid: lsid, txnNumber: NumberLong(n)}));
entry = only(() => retryable(1, 10), "i");
assert.eq(lsid.id, entry.lsid.id);
assert(entry.lsid.uid instanceof BinData, tojson(entry));
assert.eq(NumberLong(1), entry.txnNumber);
assert.eq(0, entry.stmtId);
assert.eq({ts: Timestamp(0, 0), t: NumberLong(-1)}, entry.prevOpTime);
const [third, fourth] = entries(() => assert.commandWorked(db.runCommand({
    insert: coll.getName(), documents: [{_id: 11}], lsid: lsid, txnNumber: NumberLong(2), stmtIds: [NumberInt(0)],
})) && assert.commandWorked(db.runCommand({
    insert: coll.getName(), documents: [{_id: 12}], lsid: lsid, txnNumber: NumberLong(2), stmtIds: [NumberInt(1)],
})));
assert.eq({ts: third.ts, t: third.t}, fourth.prevOpTime);
assert.eq(1, fourth.stmtId);

// Order.
const all = oplog.find({ns: ns}).sort({$natural: 1}).toArray();
for (let i = 1; i < all.length; i++) {
    assert.lt(bsonWoCompare({t: all[i - 1].ts}, {t: all[i].ts}), 0);
}
coll.drop();
