/**
 * create makes a collection once, with checked options.
 * Fails when a second create with other options succeeds, one with the same options fails, or an invalid option is taken.
 *
 * @tags: [
 *   # Explicit creation is tried, not the implicit sharding of a passthrough.
 *   assumes_unsharded_collection,
 * ]
 */
const name = "create_collection";
const coll = db[name];
coll.drop();

assert.commandWorked(db.createCollection(name));
const info = db.getCollectionInfos({name: name})[0];
assert.eq("collection", info.type);
assert.eq({}, info.options);
assert(info.info.uuid instanceof UUID || info.info.uuid instanceof BinData, tojson(info));
assert.eq(false, info.info.readOnly);
assert.eq({v: 2, key: {_id: 1}, name: "_id_"}, info.idIndex);

// The same again is no error, another shape is.
assert.commandWorked(db.runCommand({create: name}));
assert.commandFailedWithCode(db.runCommand({create: name, capped: true, size: 4096}), ErrorCodes.NamespaceExists);
assert.commandFailedWithCode(db.runCommand({create: name, validator: {a: 1}}), ErrorCodes.NamespaceExists);
assert.commandFailedWithCode(db.runCommand({create: name, viewOn: "x"}), ErrorCodes.NamespaceExists);
assert.eq(info.info.uuid, db.getCollectionInfos({name: name})[0].info.uuid);
// What says no more than its absence is the same again too.
assert.commandWorked(db.runCommand({create: name, storageEngine: {}, indexOptionDefaults: {}, changeStreamPreAndPostImages: {enabled: false}}));

coll.drop();
function refused(codes, options) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({create: name}, options)), codes, () => tojson(options));
    assert.eq(0, db.getCollectionInfos({name: name}).length, () => tojson(options));
}
refused(40415, {unheardOf: 1});
refused(ErrorCodes.InvalidOptions, {capped: true});
refused([ErrorCodes.BadValue, 51024], {capped: true, size: -1});
refused([ErrorCodes.BadValue, ErrorCodes.TypeMismatch], {size: "many"});
refused(ErrorCodes.BadValue, {validationLevel: "strongest"});
refused(ErrorCodes.BadValue, {validationAction: "shrug"});
refused(ErrorCodes.TypeMismatch, {validator: 1});
refused(ErrorCodes.BadValue, {validator: {a: {$bad: 1}}});
refused([ErrorCodes.BadValue, ErrorCodes.TypeMismatch], {idIndex: {key: {a: 1}, name: "_id_"}});
refused([ErrorCodes.InvalidOptions, ErrorCodes.BadValue], {pipeline: []});
refused(ErrorCodes.InvalidOptions, {storageEngine: {mine: {}}});
refused(ErrorCodes.BadValue, {storageEngine: {wiredTiger: {configString: "compression=best"}}});
refused(40415, {indexOptionDefaults: {mine: {}}});

// What clients encrypt is kept for them, and checked.
const encrypted = (field) => ({encryptedFields: {fields: [Object.assign({path: "a", keyId: UUID()}, field)]}});
refused(40414, {encryptedFields: {}});
refused(6316403, encrypted({path: "_id.a"}));
refused(6338406, encrypted({bsonType: "null"}));
refused(9783412, encrypted({queries: []}));
refused(6775201, encrypted({bsonType: "string", queries: {queryType: "range"}}));
refused(6367301, Object.assign(encrypted({}), {capped: true, size: 4096}));
assert.commandWorked(db.runCommand(Object.assign({create: name}, encrypted({bsonType: "int", queries: {queryType: "range", min: NumberInt(1), max: NumberInt(9)}}))));
assert.eq("a", db.getCollectionInfos({name: name})[0].options.encryptedFields.fields[0].path);
coll.drop();

// Writing creates a collection as well.
assert.commandWorked(coll.insert({_id: 1}));
assert.eq(1, db.getCollectionInfos({name: name}).length);
