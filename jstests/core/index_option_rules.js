/**
 * Options of indexes are checked and kept as clients and tools expect to read them back.
 * It fails if an option of the wrong type is taken, if seconds are kept as anything but an int, or if an index is taken for the same
 * although it is hidden and the other is not.
 */
const coll = db.index_option_rules;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: 1}));
const create = (spec, name) =>
    db.runCommand({createIndexes: coll.getName(), indexes: [Object.assign({name: name || "wanted"}, spec)]});
const spec = name => coll.getIndexes().find(i => i.name === name);
const refused = (what, code) => assert.commandFailedWithCode(create(what), code);

for (const seconds of [NumberLong(3600), 3600.5, NumberDecimal("3600.5")]) {
    assert.commandWorked(create({key: {a: 1}, expireAfterSeconds: seconds}));
    assert.eq(tojson(spec("wanted").expireAfterSeconds), "3600", "an int");
    assert.commandWorked(coll.dropIndex("wanted"));
}
refused({key: {a: 1}, hidden: 1}, ErrorCodes.TypeMismatch);
refused({key: {a: 1}, weights: {a: 1}}, ErrorCodes.CannotCreateIndex);
refused({key: {a: 1}, collation: {}}, ErrorCodes.BadValue);
refused({key: {a: 1}, partialFilterExpression: {$text: {$search: "x"}}}, ErrorCodes.BadValue);
assert.commandWorked(create({key: {a: 1}, partialFilterExpression: {a: {$all: [1]}}}));
assert.commandWorked(db.runCommand({dropIndexes: coll.getName(), index: ["*"]}));

assert.commandWorked(create({key: {a: 1}}));
assert.eq(coll.find({a: 1}).itcount(), 1);
refused({key: {a: 1}, hidden: true}, ErrorCodes.IndexOptionsConflict);
const infos = assert.commandWorked(db.runCommand({listIndexes: coll.getName(), includeIndexBuildInfo: true})).cursor.firstBatch;
assert.eq(infos.map(i => i.spec && i.spec.name), ["_id_", "wanted"]);

// The index on _id takes hardly any options, a name ends where it ends, and sessions' transactions are no place for indexes.
for (const option of [{unique: true}, {sparse: true}, {partialFilterExpression: {a: 1}}]) {
    const answer = assert.commandFailedWithCode(
        create(Object.assign({key: {_id: 1}}, option), "_id_"), ErrorCodes.InvalidIndexSpecificationOption);
    assert(answer.errmsg.includes(`'${Object.keys(option)[0]}'`), answer.errmsg);
}
assert.commandWorked(create({key: {_id: 1}}, "_id_"));
assert.commandFailedWithCode(create({key: {a: 1}}, "a\0b"), ErrorCodes.CannotCreateIndex);
const transactions = db.getSiblingDB("config");
assert.commandFailedWithCode(
    transactions.runCommand({createIndexes: "transactions", indexes: [{key: {a: 1}, name: "a"}]}), ErrorCodes.IllegalOperation);
