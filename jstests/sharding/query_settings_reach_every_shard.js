/**
 * Query settings are the config server's, which tells the shards; a command that could not tell all of them is repeated.
 * It fails if a repeated removal leaves the settings on a shard that the first did not reach.
 *
 * @tags: [requires_sharding]
 */
import {shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const admin = db.getSiblingDB("admin");
const shard = shardConnection(db, shardNames(db)[1]);
const shape = {find: "query_settings_reach", filter: {a: 1, b: 1}, $db: db.getName()};
function known() {
    const reply = assert.commandWorked(shard.adminCommand({getClusterParameter: "querySettings"}));
    return reply.clusterParameters[0].settingsArray.length;
}
assert.eq(0, known());
const hash = assert.commandWorked(admin.runCommand({setQuerySettings: shape, settings: {reject: true}})).queryShapeHash;
assert.eq(1, known());
const point = configureFailPoint(
    shard, "failCommand", {failCommands: ["_shardsvrSetClusterParameter"], failInternalCommands: true, errorCode: 2});
assert.commandFailedWithCode(admin.runCommand({removeQuerySettings: hash}), 2);
assert.eq(1, known());
// From here on the config server may tell it by itself, too.
point.off();
assert.commandWorked(admin.runCommand({removeQuerySettings: hash}));
assert.eq(0, known());
