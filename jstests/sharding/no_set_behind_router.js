/**
 * A router is in no replica set, and says so: shells show its `info` in their prompt.
 *
 * @tags: [requires_sharding]
 */
const said = assert.commandFailed(db.adminCommand({replSetGetStatus: 1}));
assert.eq("mongos", said.info);
assert.eq("replSetGetStatus is not supported through mongos", said.errmsg);
