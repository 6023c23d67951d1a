/**
 * What concerns a whole cluster is set through its router and stands on every node: cluster parameters, and the
 * collection in which sessions are kept.
 * Fails when a shard misses a parameter, when one is set on a shard directly, or when the config server does not make
 * config.system.sessions sharded with its expiry.
 *
 * @tags: [requires_sharding]
 */
import {shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const shards = shardNames(db).map(name => shardConnection(db, name));
const config = new Mongo(db.adminCommand({getShardMap: 1}).map.config.split("/")[1]);

function value(node) {
    const reply = assert.commandWorked(node.adminCommand({getClusterParameter: "testIntClusterParameter"}));
    return reply.clusterParameters[0].intData;
}
assert.commandWorked(db.adminCommand({setClusterParameter: {testIntClusterParameter: {intData: 21}}}));
for (const node of [db.getMongo(), config].concat(shards)) {
    assert.eq(21, value(node), node.host);
}
assert.commandFailed(shards[0].adminCommand({setClusterParameter: {testIntClusterParameter: {intData: 1}}}));
assert.commandFailedWithCode(db.adminCommand({setClusterParameter: {noSuchParameter: {x: 1}}}), ErrorCodes.NoSuchKey);
assert.commandFailedWithCode(db.adminCommand({getClusterParameter: "noSuchParameter"}), ErrorCodes.NoSuchKey);
assert.commandWorked(db.adminCommand({setClusterParameter: {testIntClusterParameter: {}}}));
assert.eq(16, value(shards[0]), "the default comes back");

// Sessions.
assert.commandWorked(config.adminCommand({refreshLogicalSessionCacheNow: 1}));
const sessions = db.getSiblingDB("config").system.sessions;
const entry = db.getSiblingDB("config").collections.findOne({_id: "config.system.sessions"});
assert.eq({_id: 1}, entry.key);
assert.gt(db.getSiblingDB("config").chunks.countDocuments({uuid: entry.uuid}), 0);
const expiry = sessions.getIndexes().find(index => index.name === "lsidTTLIndex");
assert.eq({lastUse: 1}, expiry.key);
assert.eq(1800, expiry.expireAfterSeconds);
const started = assert.commandWorked(db.adminCommand({startSession: 1}));
for (const node of [db.getMongo()].concat(shards)) {
    assert.commandWorked(node.adminCommand({refreshLogicalSessionCacheNow: 1}));
}
assert.eq(1, sessions.countDocuments({"_id.id": started.id.id}));
assert.commandWorked(config.adminCommand({refreshLogicalSessionCacheNow: 1}), "a second time changes nothing");
assert.eq(entry.uuid, db.getSiblingDB("config").collections.findOne({_id: "config.system.sessions"}).uuid);
