/**
 * A collection can change its name and keep everything else.
 * Fails when documents, indexes or the UUID change with the name, or a target that exists is replaced without being asked.
 *
 * @tags: [
 *   # A sharded collection may be renamed only where its target is no other one.
 *   assumes_unsharded_collection,
 * ]
 */
const from = db.rename_collection_from;
const to = db.rename_collection_to;
from.drop();
to.drop();
assert.commandWorked(from.insert([{_id: 1, a: 1}, {_id: 2, a: 2}]));
assert.commandWorked(from.createIndex({a: 1}, {unique: true}));
const uuid = db.getCollectionInfos({name: from.getName()})[0].info.uuid;

function rename(source, target, options) {
    return db.adminCommand(Object.assign({renameCollection: source, to: target}, options));
}
assert.commandWorked(rename(from.getFullName(), to.getFullName()));
assert.eq([], db.getCollectionInfos({name: from.getName()}));
assert.eq(2, to.find().itcount());
assert.eq(uuid, db.getCollectionInfos({name: to.getName()})[0].info.uuid);
assert.eq(["_id_", "a_1"], to.getIndexes().map(index => index.name).sort());
assert.commandFailedWithCode(to.insert({_id: 3, a: 1}), ErrorCodes.DuplicateKey);

assert.commandFailedWithCode(rename(from.getFullName(), to.getFullName()), ErrorCodes.NamespaceNotFound);
assert.commandWorked(from.insert({_id: 9}));
assert.commandFailedWithCode(rename(from.getFullName(), to.getFullName()), ErrorCodes.NamespaceExists);
assert.commandWorked(rename(from.getFullName(), to.getFullName(), {dropTarget: true}));
assert.eq([{_id: 9}], to.find().toArray());

assert.commandFailedWithCode(rename(to.getFullName(), to.getFullName()), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(rename("nodot", to.getFullName()), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(rename(to.getFullName(), db.getName() + ".a$b"), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(rename(to.getFullName(), db.getName() + "." + "n".repeat(255)), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(rename(to.getFullName(), db.getName() + ".system.secret"), [ErrorCodes.IllegalOperation, ErrorCodes.InvalidNamespace]);
assert.commandFailedWithCode(db.runCommand({renameCollection: to.getFullName(), to: from.getFullName()}), ErrorCodes.Unauthorized);

assert.commandWorked(to.renameCollection(from.getName()));
assert.eq([{_id: 9}], from.find().toArray());

// A collection named by its UUID is renamed, or gives way, only if it is that one.
const uuidOf = (collection) => db.getCollectionInfos({name: collection.getName()})[0].info.uuid;
assert.commandWorked(to.insert({_id: 10}));
const [source, target] = [uuidOf(from), uuidOf(to)];
for (const options of [{dropTarget: source}, {dropTarget: true, collectionUUID: target}]) {
    assert.commandFailedWithCode(rename(from.getFullName(), to.getFullName(), options), ErrorCodes.CollectionUUIDMismatch, tojson(options));
    assert.eq([[{_id: 9}], [{_id: 10}]], [from.find().toArray(), to.find().toArray()]);
}
assert.commandFailedWithCode(rename(from.getFullName(), db.getName() + ".rename_collection_none", {dropTarget: target}), ErrorCodes.CollectionUUIDMismatch);
assert.commandFailedWithCode(rename(from.getFullName(), to.getFullName(), {dropTarget: BinData(0, "AAAA")}), ErrorCodes.InvalidUUID);
assert.commandFailedWithCode(rename(from.getFullName(), to.getFullName(), {dropTarget: 1}), ErrorCodes.TypeMismatch);
assert.commandWorked(rename(from.getFullName(), to.getFullName(), {dropTarget: target, collectionUUID: source}));
assert.eq([{_id: 9}], to.find().toArray());
