/**
 * With the cluster parameter pauseMigrationsDuringMultiUpdates an update or delete of many documents on several shards meets
 * each document once, whatever moves meanwhile. It fails if a range leaves a shard that has yet to execute the statement, or
 * if ranges stay held after it.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "paused_migrations", {x: 1}, [{x: 0}, {x: 10}], [first, second, second]);
const testDB = coll.getDB();
const documents = [-2, -1, 1, 2, 11, 12].map((x) => ({_id: x, x: x, n: 0}));
assert.commandWorked(coll.insert(documents));
const set = (enabled) => assert.commandWorked(
    db.adminCommand({setClusterParameter: {pauseMigrationsDuringMultiUpdates: {enabled: enabled}}}));

// The statement stands still before the second shard, which has said that it would take it, while one of its ranges is
// to leave, which it does once the statement has ended.
function beside(name, min, max, act, check) {
    const point = configureFailPoint(shardConnection(db, second), "failCommand",
        {failCommands: [name], failInternalCommands: true, namespace: coll.getFullName(), blockConnection: true, blockTimeMS: 1500},
        {skip: 1});
    try {
        const moving = {moveRange: coll.getFullName(), min: min, max: max, toShard: first};
        const stands = {waitForFailPoint: "failCommand", timesEntered: point.timesEntered + 1, maxTimeMS: 60000};
        const join = startParallelShell(`
            assert.commandWorked(new Mongo("${shardConnection(db, second).host}").getDB("admin").runCommand(${tojson(stands)}));
            assert.commandWorked(db.adminCommand(${tojson(moving)}));`, db.getMongo().port);
        act();
        join();
    } finally {
        point.off();
    }
    check();
}

set(true);
try {
    beside("update", {x: 0}, {x: 10}, () => {
        const done = assert.commandWorked(testDB.runCommand({update: "c", updates: [{q: {}, u: {$inc: {n: 1}}, multi: true}]}));
        assert.eq([6, 6], [done.n, done.nModified], tojson(done));
    }, () => assert.eq(6, coll.find({n: 1}).itcount()));
    beside("delete", {x: 10}, {x: MaxKey}, () => assert.eq(6, coll.deleteMany({n: 1}).deletedCount),
           () => assert.eq(0, coll.find().itcount()));
} finally {
    set(false);
}
const reply = db.adminCommand({getClusterParameter: "pauseMigrationsDuringMultiUpdates"});
assert.eq(false, assert.commandWorked(reply).clusterParameters[0].enabled);
