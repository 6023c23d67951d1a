/**
 * Options of indexes that are for other versions or engines are refused, and unknown ones are left out where that is asked for. It fails if
 * they are stored.
 */
const coll = db.index_options_of_storage;
coll.drop();
const create = (spec, more) => db.runCommand(Object.assign({createIndexes: coll.getName(), indexes: [spec]}, more));
assert.commandFailedWithCode(create({key: {a: 1}, name: "a", v: 1, collation: {locale: "fr"}}), ErrorCodes.CannotCreateIndex);
assert.commandWorked(create({key: {a: 1}, name: "a", v: 1}));
assert.commandFailedWithCode(create({key: {b: 1}, name: "b", storageEngine: {foo: {}}}), ErrorCodes.InvalidOptions);
assert.commandWorked(create({key: {b: 1}, name: "b", storageEngine: {wiredTiger: {}}}));
const unknown = {key: {c: 1}, name: "c", unheardOf: 1};
assert.commandFailedWithCode(create(unknown), ErrorCodes.InvalidIndexSpecificationOption);
assert.commandFailedWithCode(create(unknown, {ignoreUnknownIndexOptions: false}), ErrorCodes.InvalidIndexSpecificationOption);
assert.commandWorked(create(unknown, {ignoreUnknownIndexOptions: true}));
assert.eq({v: 2, key: {c: 1}, name: "c"}, coll.getIndexes().find((i) => i.name === "c"));
