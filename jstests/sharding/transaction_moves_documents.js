/**
 * A transaction that changes a document's shard key keeps the document, even if the range it goes to has just moved and the
 * router does not know. It fails if the document is gone after the commit.
 *
 * @tags: [requires_own_servers]
 */
import {moveRange, shardByRanges} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 3, mongos: 2});
const shards = [st.shard0.shardName, st.shard1.shardName, st.shard2.shardName];
assert.commandWorked(st.s0.adminCommand({enableSharding: "d", primaryShard: shards[0]}));
const coll = st.s0.getDB("d").c;
shardByRanges(coll, {x: 1}, [{x: 0}], [shards[0], shards[1]]);
const upper = {min: {x: 0}, max: {x: MaxKey}};
const statements = {
    update: (x) => ({update: "c", updates: [{q: {x: x}, u: {$set: {x: x + 1000}}}]}),
    bulk: (x) => ({update: "c", updates: [{q: {_id: x}, u: {$set: {x: x + 1000}}}]}),
    modify: (x) => ({findAndModify: "c", query: {x: x}, update: {$set: {x: x + 1000}}}),
};
const session = st.s0.startSession();
const inSession = session.getDatabase("d");
let owner = 1;
let x = -100;
for (const [name, statement] of Object.entries(statements)) {
    x++;
    assert.commandWorked(coll.insert({_id: x, x: x}));
    // The first router knows the owner; the second moves the range away.
    assert.eq(0, coll.find({x: {$gte: 2000}}).itcount());
    owner = 3 - owner;
    moveRange(st.s1.getDB("d").c, upper, shards[owner]);
    session.startTransaction();
    const done = inSession.runCommand(statement(x));
    if (done.ok) {
        assert.eq(1, name === "modify" ? done.lastErrorObject.n : done.nModified, tojson(done));
        assert.commandWorked(session.commitTransaction_forTesting());
        assert.eq([{_id: x, x: x + 1000}], coll.find({_id: x}).toArray(), name);
    } else {
        assert.contains("TransientTransactionError", done.errorLabels || [], tojson(done));
        session.abortTransaction_forTesting();
        assert.eq([{_id: x, x: x}], coll.find({_id: x}).toArray(), name);
    }
    assert.eq(1, st.s1.getDB("d").c.find({_id: x}).itcount(), name);
}
session.endSession();
st.stop();
