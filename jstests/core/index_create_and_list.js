/**
 * Indexes are made once, listed with what they were made with, and found by name or key.
 * Fails when an index is listed with other options, made twice, or made anew with options that contradict it.
 */
const coll = db.index_create_and_list;
coll.drop();
const name = coll.getName();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: 1}));
// A sharded collection has one more, for its key.
const initially = coll.getIndexes().length;

function create(...indexes) {
    return db.runCommand({createIndexes: name, indexes: indexes});
}
function listed(indexName) {
    return coll.getIndexes().filter(index => index.name == indexName)[0];
}

assert.commandWorked(create({key: {a: 1}, name: "a_1"}, {key: {b: -1, "c.d": 1}, name: "compound"}));
assert.eq(initially + 2, coll.getIndexes().length);
assert.eq({v: 2, key: {a: 1}, name: "a_1"}, listed("a_1"));
assert.eq({v: 2, key: {b: -1, "c.d": 1}, name: "compound"}, listed("compound"));
assert.eq({v: 2, key: {_id: 1}, name: "_id_"}, listed("_id_"));

// The same again changes nothing.
assert.commandWorked(create({key: {a: 1}, name: "a_1"}));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(create({key: {_id: 1}, name: "_id_"}));
assert.eq(initially + 2, coll.getIndexes().length);

assert.commandFailedWithCode(create({key: {a: 1}, name: "other_name"}), ErrorCodes.IndexOptionsConflict);
assert.commandFailedWithCode(create({key: {z: 1}, name: "a_1"}), [ErrorCodes.IndexKeySpecsConflict, ErrorCodes.IndexOptionsConflict]);
assert.commandFailedWithCode(create({key: {a: 1}, name: "a_1", sparse: true}), [ErrorCodes.IndexOptionsConflict, ErrorCodes.IndexKeySpecsConflict]);
assert.commandFailedWithCode(create(), ErrorCodes.BadValue);
assert.commandFailedWithCode(create({key: {x: 1}}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(create({name: "x"}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(create({key: {}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: 0}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: "unheardOf"}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: true}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {"x..y": 1}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {$x: 1}, name: "x"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: 1}, name: ""}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: 1}, name: "*"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(create({key: {x: 1}, name: "x", unheardOf: 1}), ErrorCodes.InvalidIndexSpecificationOption);
assert.commandFailedWithCode(create({key: {x: 1}, name: "x", v: 7}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(create({key: {x: 1}, name: "_id_"}), ErrorCodes.BadValue);
assert.eq(initially + 2, coll.getIndexes().length);

// Any number but zero is a direction.
assert.commandWorked(create({key: {n: 2.5, m: -0.5}, name: "odd"}));
assert.eq({n: 2.5, m: -0.5}, listed("odd").key);
