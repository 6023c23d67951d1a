/**
 * listDatabases shows which databases there are and how large.
 * Fails when a database with collections is missing, an empty one is shown, or a filter or nameOnly is not applied.
 */
const name = "list_databases_test";
const mine = db.getSiblingDB(name);
assert.commandWorked(mine.dropDatabase());

function list(options) {
    return assert.commandWorked(db.adminCommand(Object.assign({listDatabases: 1}, options)));
}
assert(!list().databases.some(d => d.name == name));
assert.commandWorked(mine.a.insert({_id: 1}));

const entry = list().databases.filter(d => d.name == name);
assert.eq(1, entry.length);
assert.eq(false, entry[0].empty);
assert.eq("number", typeof Number(entry[0].sizeOnDisk));
assert(list().hasOwnProperty("totalSize"));

assert.eq([{name: name}], list({nameOnly: true, filter: {name: name}}).databases);
assert.eq([name], list({filter: {name: /^list_databases_/}}).databases.map(d => d.name));
assert.eq([], list({filter: {name: "no_such_database"}}).databases);
assert(!list({nameOnly: true}).hasOwnProperty("totalSize"));
assert.contains("admin", list({nameOnly: true}).databases.map(d => d.name));
const hello = db.hello();
if (hello.setName || hello.msg === "isdbgrid") {
    assert.eq([false], list({filter: {name: "config"}}).databases.map(d => d.empty), "sessions and transactions leave something there");
}

assert.commandFailedWithCode(mine.runCommand({listDatabases: 1}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(db.adminCommand({listDatabases: 1, filter: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.adminCommand({listDatabases: 1, filter: {$bad: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.adminCommand({listDatabases: 1, unheardOf: 1}), 40415);
assert.commandWorked(mine.dropDatabase());
