/**
 * A secondary reads what happened by a time its client has seen, also when that came from elsewhere and its set has written nothing
 * since; and it has the primary write what an aggregation read through it.
 * It fails if such a read waits for ever or sees less, if $out and $merge are refused, or if a read without leave is served.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 3000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
const primary = rst.getPrimary(), secondary = rst.getSecondary();
const test = primary.getDB("test"), there = secondary.getDB("test");
const preference = {$readPreference: {mode: "secondary"}};
/** What a client says of the newest time it has seen. */
const seen = (time) => ({$clusterTime: {
    clusterTime: time, signature: {hash: BinData(0, "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), keyId: NumberLong(0)}}});

// Each write is read by its time, at once.
for (let i = 0; i < 20; i++) {
    const written = assert.commandWorked(test.runCommand({insert: "c", documents: [{_id: i}], writeConcern: {w: 1}}));
    const read = assert.commandWorked(there.runCommand(Object.assign(
        {find: "c", filter: {_id: i}, readConcern: {level: "local", afterClusterTime: written.operationTime}}, seen(written.operationTime), preference)));
    assert.eq([{_id: i}], read.cursor.firstBatch);
}

// A time of another part of the cluster, a little ahead of everything here.
rst.awaitReplication();
const now = assert.commandWorked(test.runCommand({ping: 1})).operationTime;
const ahead = Timestamp(now.t + 1, 1);
const began = Date.now();
assert.commandWorked(there.runCommand(Object.assign(
    {find: "c", readConcern: {level: "majority", afterClusterTime: ahead}, maxTimeMS: 20000}, seen(ahead), preference)));
assert.lt(Date.now() - began, 8000, "it waited for somebody to write");

// A pipeline that writes.
assert.commandFailedWithCode(there.runCommand({aggregate: "c", pipeline: [{$out: "d"}], cursor: {}}), 13435);
const out = (stage) => there.runCommand(Object.assign(
    {aggregate: "c", pipeline: [{$match: {_id: {$lt: 5}}}, stage], cursor: {}, writeConcern: {w: 3, wtimeout: 60000}}, preference));
let reply = assert.commandWorked(out({$out: "d"}));
assert.eq([], reply.cursor.firstBatch);
secondary.setSecondaryOk();
assert.eq(5, there.d.find().itcount());
assert.commandWorked(out({$merge: {into: "d", whenMatched: [{$set: {again: true}}]}}));
assert.eq(5, there.d.find({again: true}).itcount());
assert.commandFailedWithCode(out({$out: {db: "test"}}), [40414, 16994, 9]);
assert.commandFailedWithCode(there.runCommand({insert: "d", documents: [{}]}), 10107);
rst.stopSet();
