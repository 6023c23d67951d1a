/**
 * When the commit of a transaction over several shards fails, no shard keeps its part open: what it wrote can be written at
 * once by others. It fails if a part waits for transactionLifetimeLimitSeconds because its coordinator has died.
 *
 * @tags: [requires_own_servers]
 */
import {shardByRanges} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
const coll = st.s.getDB("d").c;
shardByRanges(coll, {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}], {writeConcern: {w: "majority"}}));

const session = st.s.startSession();
session.startTransaction();
const inSession = session.getDatabase("d").c;
assert.commandWorked(inSession.update({x: -1}, {$set: {y: 1}}));
assert.commandWorked(inSession.update({x: 1}, {$set: {y: 1}}));
// The coordinator forgets its part: it was not prepared.
st.rs0.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
st.rs0.start(0, {}, true);
st.rs0.awaitNodesAgreeOnPrimary();
assert.soon(() => {
    const done = session.commitTransaction_forTesting();
    return done.code === ErrorCodes.NoSuchTransaction;
}, "the commit did not fail for good");
const written = coll.getDB().runCommand({update: "c", updates: [{q: {x: 1}, u: {$set: {z: 1}}}], maxTimeMS: 10000});
assert.eq(1, assert.commandWorked(written).nModified);
assert.eq([{_id: 2, x: 1, z: 1}], coll.find({x: 1}).toArray());
assert.eq([{_id: 1, x: -1}], coll.find({x: -1}).toArray());
assert.eq(0, st.rs1.getPrimary().getDB("admin").serverStatus().transactions.currentOpen);
st.stop();
