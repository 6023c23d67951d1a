/**
 * Reads from secondaries see each document once while ranges move, and an open cursor of a secondary ends whole or with an
 * error when its range has gone. It fails if an orphan is shown, a document is missing, or a cursor is silently cut short.
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
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {x: 50}}));
const documents = Array.from({length: 100}, (_, x) => ({_id: x, x: x}));
assert.commandWorked(db.runCommand({insert: "c", documents: documents, writeConcern: {w: 2, wtimeout: 30000}}));
const all = documents.map((d) => d._id);
const secondary = {mode: "secondary"};
const read = () => assert.commandWorked(db.runCommand(
    {find: "c", batchSize: 200, readConcern: {level: "local"}, $readPreference: secondary})).cursor.firstBatch.map((d) => d._id).sort((a, b) => a - b);
assert.eq(all, read());

// A cursor that was opened before the move, with most of its documents to come.
const opened = assert.commandWorked(db.runCommand({find: "c", sort: {x: 1}, batchSize: 5, $readPreference: secondary})).cursor;
const move = (to) => assert.commandWorked(
    st.s.adminCommand({moveRange: "test.c", min: {x: 50}, max: {x: MaxKey}, toShard: to, waitForDelete: true, secondaryThrottle: true}));
for (const to of [st.shard1.shardName, st.shard0.shardName]) {
    move(to);
    assert.eq(all, read());
}
const seen = opened.firstBatch.map((d) => d._id);
let id = opened.id, failed = false;
while (id != 0 && !failed) {
    const more = db.runCommand({getMore: id, collection: "c", $readPreference: secondary});
    // QueryPlanKilled: how a secondary ends a cursor whose range is about to be deleted.
    failed = !more.ok;
    if (failed) {
        assert.commandFailedWithCode(more, 175);
    } else {
        seen.push(...more.cursor.nextBatch.map((d) => d._id));
        id = more.cursor.id;
    }
}
assert(failed || bsonWoCompare({a: all}, {a: seen}) === 0, tojson(seen));
st.stop();
