/**
 * A read of level majority through a router shows of a shard whose secondaries lag what they have, and does not wait.
 * It fails if it waits, shows what the shard's primary alone has, or shows a document twice or not at all after a chunk has moved.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, letGo} from "jstests/replsets/libs/members.js";

const st = new ShardingTest({shards: 2, mongos: 1, rs: {nodes: 3}, config: 1});
const db = st.s.getDB("test");
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {_id: 1}}));
const numbers = Array.from({length: 100}, (_, i) => ({_id: i}));
assert.commandWorked(db.runCommand({insert: "c", documents: numbers, writeConcern: {w: "majority"}}));
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {_id: 50}}));
const move = {moveChunk: "test.c", find: {_id: 50}, to: st.shard1.shardName, _waitForDelete: false, writeConcern: {w: "majority"}};
assert.commandWorked(st.s.adminCommand(move));
// The node is kept as it is, once a second.
sleep(2200);

const sets = [st.rs0, st.rs1];
const secondaries = sets.map((set) => set.getSecondaries());
sets.forEach((set, i) => holdBehind(set.getPrimary(), secondaries[i], "other"));
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 49.5}, {_id: 99.5}], writeConcern: {w: 1}}));
assert.commandWorked(db.runCommand({delete: "c", deletes: [{q: {_id: 60}, limit: 1}], writeConcern: {w: 1}}));
const ids = (level) => assert.commandWorked(db.runCommand(
    {find: "c", sort: {_id: 1}, batchSize: 1000, readConcern: {level}, maxTimeMS: 20000})).cursor.firstBatch.map((d) => d._id);
const all = numbers.map((d) => d._id);
for (let i = 0; i < 3; i++) {
    assert.eq(all, ids("majority"));
}
assert.eq(101, ids("local").length);
assert.eq(100, assert.commandWorked(db.runCommand({count: "c", readConcern: {level: "majority"}, maxTimeMS: 20000})).n);
const group = [{$group: {_id: null, n: {$sum: 1}}}];
assert.eq(100, assert.commandWorked(db.runCommand(
    {aggregate: "c", pipeline: group, cursor: {}, readConcern: {level: "majority"}, maxTimeMS: 20000})).cursor.firstBatch[0].n);

secondaries.flat().forEach(letGo);
sets.forEach((set) => set.awaitReplication());
const now = all.concat([49.5, 99.5]).filter((id) => id !== 60).sort((a, b) => a - b);
assert.eq(now, ids("majority"));
// Written past the router.
sets.forEach((set) => set.getPrimary().getDB("test").other.drop());
st.stop();
