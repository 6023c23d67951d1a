/**
 * A batch never exceeds sixteen megabytes, so that every reply fits into one message.
 * Fails when a reply holds more bytes than that, or the documents that did not fit are lost.
 */
const coll = db.cursor_batches_by_bytes;
coll.drop();
const megabyte = "x".repeat(1024 * 1024);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert({_id: i, padding: megabyte}));
}

let cursor = assert.commandWorked(db.runCommand({find: coll.getName(), sort: {_id: 1}, batchSize: 100})).cursor;
const sizes = [cursor.firstBatch.length];
let seen = cursor.firstBatch.map(doc => doc._id);
while (cursor.id != 0) {
    cursor = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: coll.getName()})).cursor;
    sizes.push(cursor.nextBatch.length);
    seen = seen.concat(cursor.nextBatch.map(doc => doc._id));
}
assert.eq([...Array(20).keys()], seen);
assert.lte(2, sizes.length, () => tojson(sizes));
for (const size of sizes) {
    assert.lte(size, 15, () => tojson(sizes));
}
assert(coll.drop());
