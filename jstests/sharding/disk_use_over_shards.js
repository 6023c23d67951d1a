/**
 * A find that goes to shards spills only where the client, or the parameter of the shard, allows it.
 * Fails when a router does not pass allowDiskUse on, for a collection or for a view, or a shard takes allowDiskUseByDefault for true.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardByRanges, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const testDB = freshDatabase(db, "disk_use");
const coll = testDB.c;
shardByRanges(coll, {_id: 1}, [{_id: 0}], shardNames(db));
const padding = "x".repeat(1000);
assert.commandWorked(coll.insert([...Array(400).keys()].map(i => ({_id: i - 200, k: i % 7, padding}))));
assert.commandWorked(testDB.createView("v", "c", []));

function withParameter(parameter, value, body) {
    const nodes = shardNames(db).map(name => shardConnection(db, name));
    const was = nodes.map(node => assert.commandWorked(node.adminCommand({setParameter: 1, [parameter]: value})).was);
    try {
        body();
    } finally {
        nodes.forEach((node, i) => assert.commandWorked(node.adminCommand({setParameter: 1, [parameter]: was[i]})));
    }
}
function check(name, said, allowed) {
    const reply = testDB.runCommand({find: name, sort: {k: 1, _id: 1}, batchSize: 400, ...said});
    if (allowed) {
        assert.eq(400, assert.commandWorked(reply).cursor.firstBatch.length, tojson([name, said]));
    } else {
        assert.commandFailedWithCode(reply, ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed, tojson([name, said]));
    }
}
withParameter("internalQueryMaxBlockingSortMemoryUsageBytes", 20 * 1024, () => {
    for (const byDefault of [true, false]) {
        withParameter("allowDiskUseByDefault", byDefault, () => {
            for (const name of ["c", "v"]) {
                check(name, {}, byDefault);
                check(name, {allowDiskUse: null}, byDefault);
                check(name, {allowDiskUse: true}, true);
                check(name, {allowDiskUse: false}, false);
            }
        });
    }
});
