/**
 * A statement of one document that asks several shards and finds nothing is acknowledged as its write concern says: what it has read
 * may be rolled back until the majority of each shard has it.
 * It fails if it is acknowledged for a majority that lags, or waits where no more than the primary is asked for.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, letGo} from "jstests/replsets/libs/members.js";

const st = new ShardingTest({shards: 2, mongos: 1, rs: {nodes: 3}, config: 1});
const db = st.s.getDB("test");
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {x: 0}}));
const move = {moveChunk: "test.c", find: {x: 0}, to: st.shard1.shardName, _waitForDelete: true, writeConcern: {w: "majority"}};
assert.commandWorked(st.s.adminCommand(move));
assert.commandWorked(db.runCommand({insert: "c", documents: [{x: -1}, {x: 1}], writeConcern: {w: "majority"}}));

const majority = {w: "majority", wtimeout: 500};
const statements = [
    (writeConcern) => ({update: "c", updates: [{q: {y: 1}, u: {$set: {z: 1}}}], writeConcern}),
    (writeConcern) => ({delete: "c", deletes: [{q: {y: 1}, limit: 1}], writeConcern}),
    (writeConcern) => ({findAndModify: "c", query: {y: 1}, update: {$set: {z: 1}}, writeConcern}),
];
const retryable = {lsid: {id: UUID()}, txnNumber: NumberLong(0)};
const run = (statement, writeConcern, more = {}) =>
    db.runCommand(Object.assign(statement(writeConcern), {maxTimeMS: 60000}, more));

const sets = [st.rs0, st.rs1];
const secondaries = sets.map((set) => set.getSecondaries());
sets.forEach((set, i) => holdBehind(set.getPrimary(), secondaries[i], "other"));
for (const statement of statements) {
    const name = Object.keys(statement({}))[0];
    const waited = run(statement, majority);
    assert.eq(1, waited.ok, tojson(waited));
    assert(waited.writeConcernError, name + ": " + tojson(waited));
    assert.eq(64, waited.writeConcernError.code, name);

    retryable.txnNumber = NumberLong(Number(retryable.txnNumber) + 1);
    const again = run(statement, majority, retryable);
    assert.eq(1, again.ok, tojson(again));
    assert(again.writeConcernError, name + ", retryable: " + tojson(again));

    const alone = run(statement, {w: 1});
    assert.eq(1, alone.ok, tojson(alone));
    assert(!("writeConcernError" in alone), name + " with w: 1: " + tojson(alone));
}

secondaries.flat().forEach(letGo);
sets.forEach((set) => set.awaitReplication());
for (const statement of statements) {
    const done = run(statement, {w: "majority"});
    assert.eq(1, done.ok, tojson(done));
    assert(!("writeConcernError" in done), tojson(done));
}
sets.forEach((set) => set.getPrimary().getDB("test").other.drop());
st.stop();
