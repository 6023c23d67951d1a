/**
 * A read of a secondary through a router waits until the secondary has learned what its shard owns, however often that is void
 * again: beside a critical section, migrations one after another, or a primary that refuses to say.
 * It fails if the secondary refuses such a read as of an unknown version, and the router gives up.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground, shardByRanges, whileHung} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({
    shards: 2, mongos: 1, config: 1,
    rs: {nodes: 2, settings: {electionTimeoutMillis: 5000}, setParameter: {orphanCleanupDelaySecs: 0}}
});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const db = st.s.getDB("test");
const coll = db.c;
const ns = coll.getFullName();
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: first}));
shardByRanges(coll, {x: 1}, [{x: 50}], [first, first]);
const documents = Array.from({length: 100}, (_, x) => ({_id: x, x: x}));
assert.commandWorked(db.runCommand({insert: "c", documents: documents, writeConcern: {w: 2, wtimeout: 60000}}));
const primary = st.rs0.getPrimary();
const flush = "_flushRoutingTableCacheUpdates";
const find = (filter, more) => Object.assign({find: "c", filter: filter, batchSize: 200, $readPreference: {mode: "secondary"}}, more);
const read = (filter) => assert.commandWorked(db.runCommand(find(filter))).cursor.firstBatch.map((d) => d._id).sort((a, b) => a - b);
const all = documents.map((d) => d._id);

// The secondary knows nothing yet, and its primary refuses for longer than a router tries.
const refusing = configureFailPoint(
    primary, "failCommand", {failCommands: [flush], failInternalCommands: true, errorCode: 10107}, {times: 25});
assert.eq(all, read({}));
refusing.wait({timesEntered: 25});
refusing.off();

// While a critical section is entered the read waits for as long as it may.
const upper = {min: {x: 50}, max: {x: MaxKey}};
let waiting;
whileHung(primary, "moveChunkHangAtStep5", (point) => {
    const move = inBackground(db, Object.assign({moveRange: ns, toShard: second}, upper));
    point.wait();
    assert.commandFailedWithCode(db.runCommand(find({x: 1}, {maxTimeMS: 1000})), 50);
    const host = st.s.host;
    waiting = new Thread(function(host, command) {
        return new Mongo(host).getDB("test").runCommand(command);
    }, host, find({x: 1}));
    waiting.start();
    const asks = () => primary.getDB("admin").aggregate([
        {$currentOp: {allUsers: true, idleConnections: true}}, {$match: {[`command.${flush}`]: ns}},
    ]).itcount();
    assert.soon(() => asks() > 0, "nobody waits for the section");
    point.off();
    assert.commandWorked(move.returnData());
});
assert.eq([1], assert.commandWorked(waiting.returnData()).cursor.firstBatch.map((d) => d._id));
assert.eq(all, read({}));

// The primary is so slow that the next migration has made void what it says when it is heard.
const slow = configureFailPoint(
    primary, "failCommand", {failCommands: [flush], failInternalCommands: true, blockConnection: true, blockTimeMS: 400}, {times: 12});
const begun = new CountDownLatch(2), stop = new CountDownLatch(1);
const mover = new Thread(function(host, begun, stop, ns, shards) {
    const admin = new Mongo(host).getDB("admin");
    let moves = 0;
    while (stop.getCount() > 0) {
        const command = {moveRange: ns, min: {x: 50}, max: {x: MaxKey}, toShard: shards[moves % 2]};
        const reply = admin.runCommand(command);
        // What is left of an earlier move may still be here.
        assert(reply.ok || [96, 117, 200, 262].includes(reply.code), tojson(reply));
        moves += reply.ok;
        begun.countDown();
    }
    return moves;
}, st.s.host, begun, stop, ns, [second, first]);
mover.start();
try {
    begun.await();
    for (let i = 0; i < 3; i++) {
        assert.eq([1], read({x: 1}));
    }
} finally {
    stop.countDown();
    slow.off();
    mover.join();
}
assert.gte(mover.returnData(), 2);
assert.eq(all, read({}));
st.stop();
