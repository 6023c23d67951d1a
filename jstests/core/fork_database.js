/**
 * A developer tries a change on a copy of a database, whatever its size.
 * Fails when the copy lacks documents, indexes, views or options, or when a change of one is seen in the other.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
const from = db.getSiblingDB("fork_database");
const to = db.getSiblingDB("fork_database_copy");
from.dropDatabase();
to.dropDatabase();
assert.commandWorked(from.c.insert([...Array(300).keys()].map(i => ({_id: i, a: i % 3}))));
assert.commandWorked(from.c.createIndex({a: 1}, {name: "by_a"}));
assert.commandWorked(from.createView("v", "c", [{$match: {a: 0}}]));
assert.commandWorked(from.createCollection("checked", {validator: {x: {$exists: true}}}));

const fork = (command) => db.adminCommand(Object.assign({tesseraFork: from.getName(), to: to.getName()}, command));
assert.eq(2, assert.commandWorked(fork()).collections);
assert.eq(from.runCommand({dbHash: 1}).collections.c, to.runCommand({dbHash: 1}).collections.c);
assert.eq(["_id_", "by_a"], to.c.getIndexes().map(i => i.name).sort());
assert.eq(100, to.v.find().itcount());
assert.commandFailedWithCode(to.checked.insert({}), ErrorCodes.DocumentValidationFailure);
assert.neq(from.getCollectionInfos({name: "c"})[0].info.uuid, to.getCollectionInfos({name: "c"})[0].info.uuid);

assert.commandWorked(to.c.remove({a: 0}));
assert.commandWorked(from.c.insert({_id: "later"}));
assert.eq([301, 200], [from.c.count(), to.c.count()]);
assert.eq([100, 0], [from.v.find().itcount(), to.v.find().itcount()]);

assert.commandFailedWithCode(fork(), ErrorCodes.NamespaceExists);
assert.eq(2, assert.commandWorked(fork({replace: true})).collections);
assert.eq(301, to.c.count());
assert.commandFailedWithCode(db.adminCommand({tesseraFork: "fork_database_none", to: "x"}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(db.adminCommand({tesseraFork: from.getName()}), 40414);
assert.commandFailedWithCode(db.adminCommand({tesseraFork: from.getName(), to: "local"}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.adminCommand({tesseraFork: from.getName(), to: from.getName()}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.adminCommand({tesseraFork: 1, to: "x"}), ErrorCodes.TypeMismatch);
from.dropDatabase();
to.dropDatabase();
