/**
 * Requests for single documents travel from a router to a shard on shared connections.
 * It fails if one that waits holds up the others, cannot be seen or killed, or if the end of one ends another.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const testDB = freshDatabase(db, "brief_requests_share_connections", first);
const shard = shardConnection(db, first);
for (const name of ["fast", "slow"]) {
    assert.commandWorked(testDB[name].insert(Array.from({length: 50}, (_, i) => ({_id: i, n: 0}))));
}

function fail(collection, data, mode) {
    const all = {failInternalCommands: true, namespace: testDB[collection].getFullName()};
    return configureFailPoint(shard, "failCommand", Object.assign(all, data), mode);
}
const held = () => shard.getDB("admin").aggregate([
    {$currentOp: {}}, {$match: {ns: testDB.slow.getFullName()}},
]).toArray();

/** Has a find wait on the shard until it is killed there. */
function holdFind() {
    const point = fail("slow", {failCommands: ["find"], blockConnection: true, blockTimeMS: 10 * 60 * 1000}, {times: 1});
    const shell = startParallelShell(function() {
        const slow = db.getSiblingDB("brief_requests_share_connections");
        assert.commandFailedWithCode(slow.runCommand({find: "slow", filter: {_id: 1}}), ErrorCodes.Interrupted);
    }, db.getMongo().port);
    assert.soon(() => held().length === 1, () => tojson(held()));
    return () => {
        assert.commandWorked(shard.adminCommand({killOp: 1, op: held()[0].opid}));
        shell();
        assert.eq([], held());
        point.off();
    };
}

// Others pass the one that waits, on every connection there is.
let release = holdFind();
for (let i = 0; i < 50; i++) {
    assert.eq({_id: i, n: 0}, testDB.fast.findOne({_id: i}));
    assert.commandWorked(testDB.fast.updateOne({_id: i}, {$inc: {n: i}}));
    assert.eq(i, testDB.fast.findAndModify({query: {_id: i}, update: {$inc: {n: 1}}}).n);
}
assert.commandWorked(testDB.fast.insert({_id: 50, n: 51}));
assert.commandWorked(testDB.fast.deleteOne({_id: 0}));
assert.eq(50, testDB.fast.find({$expr: {$eq: ["$n", {$add: ["$_id", 1]}]}}).itcount());
assert.eq(1, held().length);
release();

// A connection that is closed on one of them is closed for this one only.
release = holdFind();
const close = fail("fast", {failCommands: ["update"], closeConnection: true}, {times: 1});
const update = {update: "fast", updates: [{q: {_id: 1}, u: {$inc: {n: 100}}}]};
assert.commandFailedWithCode(testDB.runCommand(update), ErrorCodes.HostUnreachable);
assert.commandWorked(testDB.runCommand(update));
close.off();
assert.eq(1, held().length, "the request that waits has gone with the other");
assert.eq(102, testDB.fast.findOne({_id: 1}).n);
release();
assert.commandWorked(testDB.dropDatabase());
