/**
 * Dropping a database drops all of its collections and no other database.
 * Fails when a collection survives, a database whose name begins alike is dropped too, or a missing one is an error.
 */
const doomed = db.getSiblingDB("drop_database_doomed");
const alike = db.getSiblingDB("drop_database_doomed_not");
assert.commandWorked(doomed.dropDatabase());
assert.commandWorked(alike.dropDatabase());

assert.commandWorked(doomed.a.insert({_id: 1}));
assert.commandWorked(doomed.b.createIndex({x: 1}));
assert.commandWorked(doomed.runCommand({create: "v", viewOn: "a"}));
assert.commandWorked(alike.a.insert({_id: 2}));

function databases() {
    return assert.commandWorked(db.adminCommand({listDatabases: 1, nameOnly: true})).databases.map(d => d.name);
}
assert.contains("drop_database_doomed", databases());

const reply = assert.commandWorked(doomed.dropDatabase());
assert.eq(1, reply.ok);
assert(!reply.hasOwnProperty("dropped"), tojson(reply));
assert(!databases().includes("drop_database_doomed"));
assert.contains("drop_database_doomed_not", databases());
assert.eq([], doomed.getCollectionNames());
assert.eq(0, doomed.a.find().itcount());
assert.eq([{_id: 2}], alike.a.find().toArray());

// Again is fine, and so is using the name once more.
assert.commandWorked(doomed.dropDatabase());
assert.commandWorked(doomed.a.insert({_id: 3}));
assert.eq([{_id: 3}], doomed.a.find().toArray());

assert.commandWorked(doomed.dropDatabase());
assert.commandWorked(alike.dropDatabase());
