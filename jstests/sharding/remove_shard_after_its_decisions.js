/**
 * A shard that coordinates a transaction stays until all others know what became of it: nobody else could tell a part that is
 * prepared, and that would keep its locks for ever.
 * It fails if a shard is removed that owns nothing, and still has a decision to tell.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 3});
const [first, second, third] = [st.shard0, st.shard1, st.shard2].map((shard) => shard.shardName);
const admin = st.s.getDB("admin");
const remove = () => assert.commandWorked(admin.runCommand({removeShard: third}));
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "d", primaryShard: first}));
assert.commandWorked(admin.runCommand({shardCollection: "d.c", key: {x: 1}}));
assert.commandWorked(admin.runCommand({split: "d.c", middle: {x: 0}}));
assert.commandWorked(admin.runCommand({split: "d.c", middle: {x: 10}}));
assert.commandWorked(admin.runCommand({moveRange: "d.c", min: {x: 0}, max: {x: 10}, toShard: second}));
assert.commandWorked(admin.runCommand({moveRange: "d.c", min: {x: 10}, max: {x: MaxKey}, toShard: third}));
assert.commandWorked(st.s.getDB("d").c.insert([{_id: 1, x: -1}, {_id: 2, x: 1}, {_id: 3, x: 11}]));

// The shard that has only read coordinates, since it is the first of the transaction.
const soon = {setParameter: 1, coordinateCommitReturnImmediatelyAfterPersistingDecision: true};
assert.commandWorked(st.rs2.getPrimary().adminCommand(soon));
const point = configureFailPoint(st.rs2.getPrimary(), "hangBeforeDeletingCoordinatorDoc");
const session = st.s.startSession();
const coll = session.getDatabase("d").c;
session.startTransaction();
assert.eq(3, coll.findOne({x: 11})._id);
assert.commandWorked(coll.update({x: -1}, {$set: {a: 1}}));
assert.commandWorked(coll.update({x: 1}, {$set: {a: 1}}));
assert.commandWorked(session.commitTransaction_forTesting());
point.wait();

assert.eq("started", remove().state);
assert.eq("ongoing", remove().state);
assert.commandWorked(admin.runCommand({moveRange: "d.c", min: {x: 10}, max: {x: MaxKey}, toShard: first}));
const reply = remove();
assert.eq("pendingDataCleanup", reply.state, tojson(reply));
assert.eq(1, reply.pendingOperations);
assert.eq("pendingDataCleanup", assert.commandWorked(admin.runCommand({shardDrainingStatus: third})).state);

point.off();
assert.soon(() => remove().state === "completed");
assert.eq([1, 1], st.s.getDB("d").c.find({a: 1}).sort({x: 1}).toArray().map((d) => d.a));
st.stop();
