/**
 * Indexes are rebuilt by command on a standalone only. It fails if a member of a set does it, or does not say why not.
 *
 * @tags: [requires_replication]
 */
const coll = db.reindex_refused;
coll.drop();
assert.commandWorked(coll.createIndex({a: 1}));
const refused = assert.commandFailedWithCode(db.runCommand({reIndex: coll.getName()}), ErrorCodes.IllegalOperation);
assert(refused.errmsg.startsWith("reIndex is only allowed on a standalone mongod instance"), refused.errmsg);
assert.eq(2, coll.getIndexes().length);
coll.drop();
