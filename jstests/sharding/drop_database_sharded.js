/**
 * Dropping a database removes its sharded and unsharded collections from all shards, and its entry.
 * It fails if a shard keeps a collection, or the database cannot be made anew on another primary.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardByRanges, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const config = db.getSiblingDB("config");
const testDB = freshDatabase(db, "drop_database_sharded", first);
const name = testDB.getName();
shardByRanges(testDB.a, {x: 1}, [{x: 0}], [first, second]);
shardByRanges(testDB.b, {x: 1}, [{x: 0}], [second, second]);
assert.commandWorked(testDB.a.insert([{x: -1}, {x: 1}]));
assert.commandWorked(testDB.plain.insert({x: 1}));
assert.commandWorked(testDB.createView("v", "a", []));
const uuids = config.collections.find({_id: {$regex: `^${name}\\.`}}).toArray().map((c) => c.uuid);
assert.gte(uuids.length, 2);
const before = config.databases.findOne({_id: name});

const reply = assert.commandWorked(testDB.dropDatabase());
assert.eq(1, reply.ok);
assert.eq(null, config.databases.findOne({_id: name}));
assert.eq(0, config.collections.find({_id: {$regex: `^${name}\\.`}}).itcount());
assert.eq(0, config.chunks.find({uuid: {$in: uuids}}).itcount());
for (const shard of [first, second]) {
    const names = shardConnection(db, shard).adminCommand({listDatabases: 1}).databases.map((d) => d.name);
    assert(!names.includes(name), `${shard}: ${tojson(names)}`);
}
assert(!db.adminCommand({listDatabases: 1}).databases.some((d) => d.name === name));
assert.eq(0, testDB.a.find().itcount());

// Again, and a database that never was.
assert.commandWorked(testDB.dropDatabase());
assert.commandWorked(db.getSiblingDB("drop_database_never_was").dropDatabase());

// Anew, elsewhere.
assert.commandWorked(db.adminCommand({enableSharding: name, primaryShard: second}));
const after = config.databases.findOne({_id: name});
assert.eq(second, after.primary);
assert.neq(before.version.uuid, after.version.uuid);
assert.gt(bsonWoCompare({t: after.version.timestamp}, {t: before.version.timestamp}), 0);
assert.commandWorked(testDB.a.insert({_id: 1}));
assert.eq(1, shardConnection(db, second).getDB(name).a.find().itcount());
assert.eq(1, testDB.a.getIndexes().length);

// The config database is not dropped.
assert.commandFailedWithCode(config.dropDatabase(), 20);
assert.commandWorked(testDB.dropDatabase());
