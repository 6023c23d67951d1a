/**
 * Tools follow the oplog with a cursor that waits at its end and goes on when something is written.
 * It fails if the oplog cannot be followed, a new entry is not handed out, or the wait takes longer than it was given.
 *
 * @tags: [requires_replication]
 */
const local = db.getSiblingDB("local");
const oplog = local.getCollection("oplog.rs");
const coll = db.oplog_followed;
coll.drop();
assert.commandWorked(coll.insert({_id: 0}));
const newest = oplog.find().sort({$natural: -1}).limit(1).next().ts;

const cursor = assert.commandWorked(local.runCommand({
    find: "oplog.rs", filter: {ts: {$gt: newest}}, tailable: true, awaitData: true, batchSize: 10,
})).cursor;
assert.neq(NumberLong(0), cursor.id);
const more = (ms) => assert.commandWorked(
    local.runCommand({getMore: cursor.id, collection: "oplog.rs", maxTimeMS: ms})).cursor;
function until(id) {
    const seen = [];
    assert.soon(() => {
        more(500).nextBatch.forEach((entry) => seen.push(entry));
        return seen.some((entry) => entry.op === "i" && entry.o._id === id);
    }, () => tojson(seen));
    return seen;
}

// Written before it is asked.
assert.commandWorked(coll.insert({_id: 1}));
assert.commandWorked(coll.insert({_id: 2}));
const seen = until(2).filter((entry) => entry.ns === coll.getFullName());
assert.eq([1, 2], seen.map((entry) => entry.o._id));

// Written while it waits.
const writer = new Thread(function(host, name) {
    sleep(300);
    return new Mongo(host).getDB(name).oplog_followed.insert({_id: 3}).nInserted;
}, db.getMongo().host, db.getName());
writer.start();
until(3);
assert.eq(1, writer.returnData());

// Nothing comes: an empty batch after the time it was given, and the cursor lives.
const start = Date.now();
const nothing = more(400);
assert.lt(Date.now() - start, 5000);
assert.eq(cursor.id, nothing.id);
assert.commandWorked(local.runCommand({killCursors: "oplog.rs", cursors: [cursor.id]}));
assert.commandFailedWithCode(local.runCommand({getMore: cursor.id, collection: "oplog.rs"}), 43);
coll.drop();
