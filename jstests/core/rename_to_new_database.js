/**
 * A collection can be renamed into a database that does not exist yet, which is made for it where the collection is.
 * It fails if a router leaves making the database to the shard.
 *
 * @tags: [assumes_unsharded_collection]
 */
const from = db.getSiblingDB("rename_to_new_database"), to = db.getSiblingDB("rename_to_new_database_2");
const admin = db.getSiblingDB("admin");
assert.commandWorked(from.c.insert({_id: 1}));
assert.commandWorked(admin.runCommand({renameCollection: from.c.getFullName(), to: to.d.getFullName()}));
assert.eq([{_id: 1}], to.d.find().toArray());
assert.eq(0, from.c.countDocuments({}));

// It is not made for a name that nothing can have, nor for a collection that stays in its database.
const refused = admin.runCommand({renameCollection: to.d.getFullName(), to: "rename_to_new_database_3.system.d"});
assert.commandFailedWithCode(refused, 20);
assert.eq([], admin.adminCommand({listDatabases: 1, filter: {name: "rename_to_new_database_3"}}).databases);
assert.commandWorked(to.dropDatabase());
assert.commandWorked(from.dropDatabase());
