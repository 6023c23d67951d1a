/**
 * How many keys of places a document may have is a parameter of the start, indexMaxNumGeneratedKeysPerDocument.
 * It fails if a document with more is accepted, by an insert, an update or an index build, one with as many refused, or keys of other
 * fields counted.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({setParameter: {indexMaxNumGeneratedKeysPerDocument: 10}});
const db = conn.getDB("places");
const numbers = (count) => Array.from({length: count}, (_, i) => i);
assert.eq(10, conn.adminCommand({getParameter: 1, indexMaxNumGeneratedKeysPerDocument: 1}).indexMaxNumGeneratedKeysPerDocument);
assert.commandFailed(conn.adminCommand({setParameter: 1, indexMaxNumGeneratedKeysPerDocument: 20}));

assert.commandWorked(db.c.createIndex({at: "2dsphere", x: 1}));
assert.commandWorked(db.c.insert({_id: 1, at: [1, 2], x: numbers(10)}));
assert.commandFailedWithCode(db.c.insert({_id: 2, at: [1, 2], x: numbers(11)}), ErrorCodes.CannotBuildIndexKeys);
assert.commandFailedWithCode(db.c.update({_id: 1}, {$push: {x: 10}}), ErrorCodes.CannotBuildIndexKeys);
assert.eq(10, db.c.findOne({_id: 1}).x.length);

assert.commandWorked(db.d.insert({_id: 1, at: [1, 2], x: numbers(11)}));
assert.commandWorked(db.d.createIndex({x: 1}));
assert.commandFailedWithCode(db.d.createIndex({at: "2dsphere", x: 1}), ErrorCodes.CannotBuildIndexKeys);
MongoRunner.stopMongod(conn);
