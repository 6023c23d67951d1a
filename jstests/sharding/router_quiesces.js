/**
 * A router that is told to end by a signal lets its clients go first: hello refuses and says for how long the router still serves, while
 * cursors and writes go on. A second signal ends it.
 * It fails if the signal cuts clients off at once, or if the router ends only when its time is over.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 1, mongos: 2});
const coll = st.s0.getDB("test").c;
assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}, {_id: 3}]));
const cursor = coll.find().sort({_id: 1}).batchSize(2);
assert.eq({_id: 1}, cursor.next());
const served = 3600 * 1000;
assert.commandWorked(st.s0.adminCommand({setParameter: 1, mongosShutdownTimeoutMillisForSignaledShutdown: served}));

MongoRunner.stopMongos(st.s0, 15, {waitpid: false});
let reply;
assert.soon(() => !(reply = st.s0.adminCommand({hello: 1})).ok);
assert.commandFailedWithCode(reply, ErrorCodes.ShutdownInProgress);
assert.between(1, Number(reply.remainingQuiesceTimeMillis), served);
assert.eq([{_id: 2}, {_id: 3}], cursor.toArray());
assert.commandWorked(coll.insert({_id: 4}));
assert.eq(4, st.s1.getDB("test").c.countDocuments({}));
assert.commandWorked(st.s1.adminCommand({hello: 1}));

assert.eq(MongoRunner.EXIT_CLEAN, MongoRunner.stopMongos(st.s0, 15));
st.stop();
