/**
 * A getMore names a cursor, and a wrong name must be an error that drivers know as such.
 * Fails when a getMore is answered for an unknown cursor, another collection or with a malformed request, or harms the cursor it misses.
 */
const coll = db.getmore_errors;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function getMore(options) {
    return db.runCommand(Object.assign({collection: name}, options));
}
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong("123456789"), collection: name}), ErrorCodes.CursorNotFound);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(0), collection: name}), ErrorCodes.CursorNotFound);
assert.commandFailedWithCode(db.runCommand({getMore: "1", collection: name}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(1)}), 40414);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(1), collection: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(1), collection: name, unheardOf: 1}), 40415);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(1), collection: name, batchSize: -1}), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(db.runCommand({getMore: NumberLong(1), collection: ""}), ErrorCodes.InvalidNamespace);

const cursor = assert.commandWorked(db.runCommand({find: name, sort: {_id: 1}, batchSize: 2})).cursor;
assert.neq(0, cursor.id);
// Another collection, or another database, is not where this cursor is.
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: "another"}), ErrorCodes.Unauthorized);
// maxTimeMS belongs to awaited data only.
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: name, maxTimeMS: 1000}), ErrorCodes.BadValue);
// The cursor has survived all of it.
const batch = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: name, batchSize: 3})).cursor;
assert.eq([2, 3, 4], batch.nextBatch.map(doc => doc._id));
assert.eq(cursor.id, batch.id);

// Once exhausted it is gone.
const end = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: name})).cursor;
assert.eq(15, end.nextBatch.length);
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: name}), ErrorCodes.CursorNotFound);

// A time limit is for cursors that await data, even one that says nothing.
const idle = assert.commandWorked(db.runCommand({find: name, batchSize: 2})).cursor;
assert.commandFailedWithCode(db.runCommand({getMore: idle.id, collection: name, maxTimeMS: NumberInt(0)}), ErrorCodes.BadValue);
