/**
 * Dropping a collection removes its documents, indexes and name, and leaves others alone.
 * Fails when a dropped collection keeps documents or indexes when created again, or drop answers wrongly for one that is not there.
 */
const coll = db.drop_collection;
const other = db.drop_collection_other;
coll.drop();
other.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 1}, {_id: 2, a: 2}]));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(other.insert({_id: 1}));
const uuid = db.getCollectionInfos({name: coll.getName()})[0].info.uuid;

assert.eq(true, coll.drop());
assert.eq([], db.getCollectionInfos({name: coll.getName()}));
assert.eq(0, coll.find().itcount());
assert.eq([{_id: 1}], other.find().toArray());

// The second drop is no error to the command since 7.0.
assert.commandWorked(db.runCommand({drop: coll.getName()}));
assert.eq([], coll.getIndexes());
assert.commandFailedWithCode(db.runCommand({listIndexes: coll.getName()}), ErrorCodes.NamespaceNotFound);

assert.commandWorked(coll.insert({_id: 3}));
assert.eq([{_id: 3}], coll.find().toArray());
assert.eq(0, coll.getIndexes().filter(index => index.name == "a_1").length);
assert.neq(uuid, db.getCollectionInfos({name: coll.getName()})[0].info.uuid);

assert.commandFailedWithCode(db.runCommand({drop: ""}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({drop: 1}), [ErrorCodes.BadValue, ErrorCodes.InvalidNamespace, ErrorCodes.TypeMismatch]);
