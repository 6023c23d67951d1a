/**
 * Names of databases and collections are limited in length and characters.
 * Fails when an invalid name makes a collection, or a valid odd one does not.
 */
function insert(database, name) {
    return db.getSiblingDB("x").getMongo().getDB(database).runCommand({insert: name, documents: [{_id: 1}]});
}
function dropped(database) {
    assert.commandWorked(db.getSiblingDB(database).dropDatabase());
}

for (const name of ["with space", "dotted.name.here", "trailing.", "ünïcödé", "dash-under_score", "0", "systematic", "a".repeat(200)]) {
    assert.commandWorked(insert("names_of_namespaces", name), name);
    assert.eq([{_id: 1}], db.getSiblingDB("names_of_namespaces").getCollection(name).find().toArray(), name);
}
for (const name of ["", ".leading", "a\0b", "dollar$within", "$leading", "a".repeat(256)]) {
    assert.commandFailedWithCode(insert("names_of_namespaces", name), ErrorCodes.InvalidNamespace, () => tojson(name));
}
assert.commandFailedWithCode(insert("names_of_namespaces", "system.secret"), [ErrorCodes.InvalidNamespace, ErrorCodes.Unauthorized]);
dropped("names_of_namespaces");

// Sixty-three bytes are a database's name, sixty-four are not.
const longest = "d".repeat(63);
assert.commandWorked(insert(longest, "c"));
dropped(longest);
dropped("names_Of_case");
dropped("names_of_CASE");
// Databases must not differ by case alone.
assert.commandWorked(insert("names_Of_case", "c"));
assert.commandFailedWithCode(insert("names_of_CASE", "c"), ErrorCodes.DatabaseDifferCase);
dropped("names_Of_case");
