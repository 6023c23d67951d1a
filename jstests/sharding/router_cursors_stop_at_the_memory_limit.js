/**
 * What a router's open cursors keep of the shards' replies, and what its stages hold, counts where the memory of its process is short:
 * above the limit a cursor is refused that would keep much, while small ones go on, and with them the data can be read.
 * It fails if a router knows no memory limit, if its open cursors are not counted, or if a plain find is refused.
 *
 * @tags: [requires_own_servers]
 */
import {openCursors} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2});
const db = st.s.getDB("cursors");
const limit = (megabytes) => assert.commandWorked(st.s.adminCommand({setParameter: 1, processMemoryLimitMB: megabytes}));
assert.commandWorked(st.s.adminCommand({enableSharding: "cursors", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "cursors.c", key: {_id: 1}}));
assert.commandWorked(st.s.adminCommand({split: "cursors.c", middle: {_id: 200}}));
assert.commandWorked(st.s.adminCommand({moveChunk: "cursors.c", find: {_id: 200}, to: st.shard1.shardName}));
assert.commandWorked(db.c.insert([...Array(400).keys()].map(i => ({_id: i, s: i + "x".repeat(10000)}))));
const holding = [
    {find: "c", sort: {s: 1}, batchSize: 100},
    {aggregate: "c", pipeline: [{$sort: {s: -1}}], cursor: {batchSize: 1}},
    {aggregate: "c", pipeline: [{$group: {_id: "$s"}}], cursor: {batchSize: 1}},
];
const open = () => openCursors(st.s);
const onShards = () => openCursors(st.shard0, st.shard1);
const before = open();

// Shards that are asked for little send little.
const kept = assert.commandWorked(db.runCommand({find: "c", batchSize: 5})).cursor;
limit(1);
for (const command of holding) {
    assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.ExceededMemoryLimit, tojsononeline(command));
}
assert.eq(before + 1, open());
let found = kept.firstBatch.length;
for (let id = kept.id; id != 0;) {
    const next = assert.commandWorked(db.runCommand({getMore: id, collection: "c", batchSize: 5})).cursor;
    [found, id] = [found + next.nextBatch.length, next.id];
}
assert.eq(400, found);

// What holds much when memory becomes short ends with its next batch.
limit(0);
const ids = holding.map(command => assert.commandWorked(db.runCommand(command)).cursor.id);
assert(ids.every(id => id != 0));
assert.eq(before + holding.length, open());
limit(1);
assert.commandFailedWithCode(db.runCommand({getMore: ids[0], collection: "c", batchSize: 1}), ErrorCodes.ExceededMemoryLimit);
assert.commandFailedWithCode(db.runCommand({getMore: ids[0], collection: "c", batchSize: 1}), ErrorCodes.CursorNotFound);
limit(0);
assert.commandWorked(db.runCommand({killCursors: "c", cursors: ids}));
assert.soon(() => onShards() === 0, () => `${onShards()} cursors are left on the shards`);
st.stop();
