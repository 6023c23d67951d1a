/**
 * A new primary knows the range deletions that are to come before it takes a range back: nothing that was moved in is deleted.
 * It fails if a range comes back to a shard while the old one waits to be deleted, or documents go that came back.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({
    shards: 2, mongos: 1, config: 1,
    rs: {nodes: 2, settings: {electionTimeoutMillis: 2000},
         setParameter: {orphanCleanupDelaySecs: 0, receiveChunkWaitForRangeDeleterTimeoutMS: 600000}}
});
const db = st.s.getDB("test");
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {x: 1}}));
const documents = Array.from({length: 50}, (_, x) => ({_id: x, x: x}));
assert.commandWorked(db.runCommand({insert: "c", documents: documents, writeConcern: {w: 2, wtimeout: 30000}}));
const held = st.rs0.nodes.map((node) => configureFailPoint(node, "suspendRangeDeletion"));
const waiting = () => st.rs0.getPrimary().getDB("config").rangeDeletions.find().itcount();
const move = (to) => ({moveChunk: "test.c", find: {x: 1}, to: to, _waitForDelete: false});
assert.commandWorked(st.s.adminCommand(move(second)));
assert.eq(1, waiting());
st.rs0.stepUp(st.rs0.getSecondary());

// The range comes back when what is left of it is deleted, and not before.
const back = inBackground(st.s.getDB("admin"), move(first));
assert.soon(() => st.rs1.getPrimary().getDB("config").migrationCoordinators.find().itcount() === 1);
assert.eq([1, second], [waiting(), st.s.getDB("config").chunks.findOne({min: {x: MinKey}}).shard]);
held.forEach((point) => point.off());
assert.commandWorked(back.returnData());
assert.soon(() => waiting() === 0);
assert.eq([50, 50], [db.c.find().itcount(), st.rs0.getPrimary().getDB("test").c.find().itcount()]);
st.stop();
