/**
 * Clients tell a router from a mongod by its answers, and find the same helper commands on both.
 * It fails if the router's hello lacks its mark, a command of shards is offered by routers, or the other way round.
 *
 * @tags: [requires_sharding]
 */
import {configConnection, freshDatabase, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const shard = shardConnection(db, first);
const config = configConnection(db);

for (const command of ["hello", "isMaster", "ismaster"]) {
    const reply = assert.commandWorked(db.adminCommand({[command]: 1}));
    assert.eq("isdbgrid", reply.msg, command);
    assert(!("setName" in reply) && !("hosts" in reply), tojson(reply));
    assert.eq(true, command === "hello" ? reply.isWritablePrimary : reply.ismaster);
    assert.eq(48000000, reply.maxMessageSizeBytes);
    assert.eq(16777216, reply.maxBsonObjectSize);
    assert.eq(100000, reply.maxWriteBatchSize);
    assert.eq(0, reply.minWireVersion);
    assert.eq(25, reply.maxWireVersion);
    assert.eq(30, reply.logicalSessionTimeoutMinutes);
    assert(reply.localTime instanceof Date);
    assert.eq("object", typeof reply.topologyVersion);
}
const isdbgrid = assert.commandWorked(db.adminCommand({isdbgrid: 1}));
assert.eq(1, isdbgrid.isdbgrid);
assert.eq("string", typeof isdbgrid.hostname);

let hello = assert.commandWorked(shard.adminCommand({hello: 1}));
assert(!("msg" in hello), tojson(hello));
assert.eq(first, assert.commandWorked(shard.adminCommand({shardingState: 1})).shardName);
hello = assert.commandWorked(config.adminCommand({hello: 1}));
assert.eq(2, hello.configsvr);

// A router is in no set, and says so: shells show its `info` in their prompt.
const none = assert.commandFailed(db.adminCommand({replSetGetStatus: 1}));
assert.eq("mongos", none.info);
assert.eq("replSetGetStatus is not supported through mongos", none.errmsg);

// Who answers what.
for (const [command, connection] of [
    [{replSetGetConfig: 1}, db.getMongo()],
    [{_recvChunkStatus: "a.b"}, db.getMongo()],
    [{_configsvrMoveRange: "a.b"}, db.getMongo()],
    [{enableSharding: "a"}, shard],
    [{shardCollection: "a.b", key: {x: 1}}, shard],
    [{balancerStart: 1}, shard],
    [{noSuchCommand: 1}, db.getMongo()],
]) {
    assert.commandFailedWithCode(connection.getDB("admin").runCommand(command), 59, tojson(command));
}
assert.commandFailedWithCode(shard.adminCommand({_configsvrBalancerStatus: 1}), [20, 59]);

// A client's times and versions.
const testDB = freshDatabase(db, "router_answers", first);
let reply = assert.commandWorked(testDB.runCommand({insert: "c", documents: [{_id: 1}]}));
assert(reply.operationTime instanceof Timestamp, tojson(reply));
assert(reply.$clusterTime.clusterTime instanceof Timestamp, tojson(reply));
assert.gte(bsonWoCompare({t: reply.$clusterTime.clusterTime}, {t: reply.operationTime}), 0);
assert(!("$configTime" in reply) && !("$topologyTime" in reply), tojson(reply));
reply = assert.commandWorked(testDB.runCommand(
    {find: "c", readConcern: {level: "majority", afterClusterTime: reply.operationTime}}));
assert.eq(1, reply.cursor.firstBatch.length);
assert.commandWorked(testDB.runCommand({find: "c", $readPreference: {mode: "primaryPreferred"}}));
assert.commandFailedWithCode(testDB.runCommand({find: "c", readConcern: {level: "nonsense"}}), [2, 9]);

const status = assert.commandWorked(db.adminCommand({serverStatus: 1}));
assert.eq("mongos", status.process);
assert(status.sharding.configsvrConnectionString.includes("/"), tojson(status.sharding));
assert.gt(Number(status.opcounters.insert), 0);
assert(!("repl" in status), "a router is no member of a set");
assert.commandWorked(testDB.dropDatabase());

// Statistics of queries are not kept, which is no error.
assert.eq([], assert.commandWorked(db.adminCommand({aggregate: 1, pipeline: [{$queryStats: {}}], cursor: {}})).cursor.firstBatch);
