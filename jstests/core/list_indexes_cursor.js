/**
 * listIndexes answers with a cursor, like every listing.
 * Fails when an index is missing, a batch has another size, or a collection that is not there has indexes.
 */
const coll = db.list_indexes_cursor;
coll.drop();
const name = coll.getName();
assert.commandFailedWithCode(db.runCommand({listIndexes: name}), ErrorCodes.NamespaceNotFound);
assert.commandWorked(coll.insert({_id: 1}));
for (let i = 0; i < 8; i++) {
    assert.commandWorked(coll.createIndex({["f" + i]: 1}));
}
const all = assert.commandWorked(db.runCommand({listIndexes: name})).cursor;
assert.eq(0, all.id);
assert.eq(db.getName() + "." + name, all.ns);
assert.eq("_id_", all.firstBatch[0].name);
for (let i = 0; i < 8; i++) {
    assert.contains("f" + i + "_1", all.firstBatch.map(index => index.name));
}
for (const index of all.firstBatch) {
    assert.eq(2, index.v);
    assert(!index.hasOwnProperty("ns"), tojson(index));
}

let cursor = assert.commandWorked(db.runCommand({listIndexes: name, cursor: {batchSize: 3}})).cursor;
assert.eq(3, cursor.firstBatch.length);
let seen = cursor.firstBatch;
while (cursor.id != 0) {
    cursor = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: name, batchSize: 4})).cursor;
    assert.lte(cursor.nextBatch.length, 4);
    seen = seen.concat(cursor.nextBatch);
}
assert.sameMembers(all.firstBatch.map(index => index.name), seen.map(index => index.name));
assert.sameMembers(seen.map(index => index.name), coll.getIndexes().map(index => index.name));
assert.eq(seen.length, coll.getIndexKeys().length);

assert.commandFailedWithCode(db.runCommand({listIndexes: ""}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({listIndexes: name, cursor: {batchSize: -1}}), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(db.runCommand({listIndexes: name, cursor: {unheardOf: 1}}), 40415);
assert.commandFailedWithCode(db.runCommand({listIndexes: name, unheardOf: 1}), 40415);
