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

// Writing creates a collection as well.
assert.commandWorked(coll.insert({_id: 1}));
assert.eq(1, db.getCollectionInfos({name: name}).length);
