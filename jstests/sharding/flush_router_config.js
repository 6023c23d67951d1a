/**
 * flushRouterConfig makes a router, or a shard, forget a collection, a database or everything, and read it anew.
 * It fails if the command is refused in one of its forms, or a router keeps answering from what it was to forget.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "flush_router_config", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));

function refreshes() {
    const status = assert.commandWorked(db.adminCommand({serverStatus: 1}));
    const cache = status.shardingStatistics.catalogCache;
    return Number(cache.countFullRefreshesStarted) + Number(cache.countIncrementalRefreshesStarted);
}
coll.find().itcount();
const known = assert.commandWorked(db.adminCommand({serverStatus: 1})).shardingStatistics.catalogCache;
assert.gte(Number(known.numCollectionEntries), 1);
assert.gte(Number(known.numDatabaseEntries), 1);

let before = refreshes();
coll.find().itcount();
assert.eq(before, refreshes(), "what is known is not read again");

for (const argument of [coll.getFullName(), testDB.getName(), 1, true]) {
    before = refreshes();
    const reply = assert.commandWorked(db.adminCommand({flushRouterConfig: argument}));
    assert.eq(true, reply.flushed, tojson(argument));
    assert.eq(2, coll.find().itcount());
    assert.gt(refreshes(), before, tojson(argument));
}
assert.commandWorked(db.adminCommand({flushrouterconfig: 1}));
assert.commandWorked(db.adminCommand({flushRouterConfig: "nothing.here"}));

// Shards know how to refresh themselves, too.
const shard = shardConnection(db, second);
assert.commandWorked(shard.adminCommand({_flushRoutingTableCacheUpdates: coll.getFullName()}));
assert.commandWorked(shard.adminCommand({_flushDatabaseCacheUpdates: testDB.getName()}));
assert.eq(2, coll.find().itcount());

// What the router knows of a database.
const version = assert.commandWorked(db.adminCommand({getDatabaseVersion: testDB.getName()})).dbVersion;
assert.eq(db.getSiblingDB("config").databases.findOne({_id: testDB.getName()}).version, version);
const primary = assert.commandWorked(db.adminCommand({getShardVersion: testDB.getName()}));
assert.eq(first, primary.primaryShard);
assert.commandWorked(testDB.dropDatabase());
