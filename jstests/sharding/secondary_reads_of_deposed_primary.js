/**
 * A primary that is deposed inside a migration's critical section leaves it: as a secondary it asks the next primary for the placement.
 * It fails if reads of it wait for the end of a section that nobody is in any more.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground, shardByRanges} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, mongos: 1, config: 1, rs: {nodes: 2}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const db = st.s.getDB("test");
const ns = db.c.getFullName();
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: first}));
shardByRanges(db.c, {x: 1}, [{x: 0}], [first, first]);
const documents = [-2, -1, 0, 1].map((x) => ({_id: x, x: x}));
assert.commandWorked(db.runCommand({insert: "c", documents: documents, writeConcern: {w: 2, wtimeout: 60000}}));

const deposed = st.rs0.getPrimary();
const point = configureFailPoint(deposed, "hangBeforePostMigrationCommitRefresh");
const move = inBackground(db, {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second});
point.wait();
assert.commandWorked(deposed.adminCommand({replSetStepDown: 60, force: true}));
assert.soon(() => deposed.getDB("admin").runCommand({hello: 1}).secondary);
const read = {find: "c", filter: {}, sort: {x: 1}, $readPreference: {mode: "secondary"}, maxTimeMS: 30000};
const seen = assert.commandWorked(db.runCommand(read)).cursor.firstBatch;
assert.eq([-2, -1, 0, 1], seen.map((d) => d.x));
point.off();
move.join();
assert.eq(4, db.c.find().itcount());
st.stop();
