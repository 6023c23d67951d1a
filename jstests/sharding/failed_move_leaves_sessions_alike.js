/**
 * After a migration that was given up, the members of the recipient know the same sessions, and its next primary executes no
 * statement twice. It fails if the primary and its secondary differ in what they took over.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({
    shards: 2, mongos: 1, config: 1,
    rs: {nodes: 2, settings: {electionTimeoutMillis: 2000}, setParameter: {orphanCleanupDelaySecs: 0}}
});
const db = st.s.getDB("test");
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {x: 1}}));
assert.commandWorked(db.c.insert({_id: 1, x: 1, n: 0}));
const statements = [1, 2, 3].map(() => ({
    update: "c", updates: [{q: {x: 1}, u: {$inc: {n: 1}}}], lsid: {id: UUID()}, txnNumber: NumberLong(5), writeConcern: {w: 2, wtimeout: 20000}
}));
statements.forEach((s) => assert.commandWorked(db.runCommand(s)));

// It fails after the sessions were taken over.
const donor = st.rs0.getPrimary();
assert.commandWorked(donor.adminCommand({configureFailPoint: "failMigrationCommit", mode: {times: 1}}));
const move = () => st.s.adminCommand({moveChunk: "test.c", find: {x: 1}, to: st.shard1.shardName, _waitForDelete: true});
assert.commandFailed(move());
const table = (node) => {
    node.setSecondaryOk();
    return node.getDB("config").transactions.find().sort({_id: 1}).toArray();
};
const alike = (rst) => {
    rst.awaitReplication();
    const tables = rst.nodes.map(table);
    assert.eq(...tables);
    assert.eq(statements.length, tables[0].length, tojson(tables[0]));
};
alike(st.rs1);
st.rs1.stepUp(st.rs1.getSecondary());
alike(st.rs1);
assert.commandWorked(move());
statements.forEach((s) => assert.eq(1, assert.commandWorked(db.runCommand(s)).retriedStmtIds.length));
assert.eq(3, db.c.findOne({_id: 1}).n);
alike(st.rs1);
st.stop();
