/**
 * Listing databases, collections and sizes through a router sums up what the shards say.
 * It fails if a shard's part is missing from a sum, a database is listed twice, or local data shows through.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "list_through_router", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -30; x < 70; x++) {
    assert.commandWorked(coll.insert({x: x, pad: "p".repeat(100)}));
}
assert.commandWorked(testDB.plain.insert([{_id: 1}, {_id: 2}]));

// Databases.
let reply = assert.commandWorked(db.adminCommand({listDatabases: 1}));
const listed = reply.databases.filter((d) => d.name === testDB.getName());
assert.eq(1, listed.length);
assert.eq(false, listed[0].empty);
assert.sameMembers([first, second], Object.keys(listed[0].shards));
assert.eq(Number(listed[0].sizeOnDisk),
          Object.values(listed[0].shards).reduce((sum, size) => sum + Number(size), 0));
assert(reply.databases.some((d) => d.name === "config"));
assert(!reply.databases.some((d) => d.name === "local"));
assert.gte(Number(reply.totalSize), Number(listed[0].sizeOnDisk));
assert.eq(reply.databases.map((d) => d.name).sort(), reply.databases.map((d) => d.name));
reply = assert.commandWorked(db.adminCommand({listDatabases: 1, nameOnly: true, filter: {name: testDB.getName()}}));
assert.eq([{name: testDB.getName()}], reply.databases);

// Collections.
const infos = testDB.getCollectionInfos();
assert.sameMembers(["c", "plain"], infos.map((i) => i.name));
const info = infos.find((i) => i.name === "c");
assert.eq("collection", info.type);
assert.eq(collectionEntry(coll).uuid, info.info.uuid);
assert.eq({_id: 1}, info.idIndex.key);
assert.eq([{name: "c", type: "collection"}],
          testDB.runCommand({listCollections: 1, nameOnly: true, filter: {name: "c"}}).cursor.firstBatch);
let cursor = assert.commandWorked(testDB.runCommand({listCollections: 1, cursor: {batchSize: 1}})).cursor;
assert.eq(1, cursor.firstBatch.length);
const ns = cursor.ns.substring(testDB.getName().length + 1);
cursor = assert.commandWorked(testDB.runCommand({getMore: cursor.id, collection: ns})).cursor;
assert.eq(1, cursor.nextBatch.length);

// Sizes of a collection.
const stats = assert.commandWorked(testDB.runCommand({collStats: "c"}));
assert.eq(true, stats.sharded);
assert.eq(coll.getFullName(), stats.ns);
assert.eq(100, Number(stats.count));
assert.eq([30, 70], [first, second].map((name) => Number(stats.shards[name].count)));
assert.eq(Number(stats.size), Number(stats.shards[first].size) + Number(stats.shards[second].size));
assert.eq(2, Number(stats.nindexes));
assert.sameMembers(["_id_", "x_1"], Object.keys(stats.indexSizes));
const plain = assert.commandWorked(testDB.runCommand({collStats: "plain"}));
assert.eq(false, plain.sharded);
assert.eq(2, Number(plain.count));

// Sizes of a database.
const sizes = assert.commandWorked(testDB.runCommand({dbStats: 1}));
assert.eq(testDB.getName(), sizes.db);
assert.eq(102, Number(sizes.objects));
assert.eq(2, Object.keys(sizes.raw).length);

// A range's size.
reply = assert.commandWorked(db.adminCommand(
    {dataSize: coll.getFullName(), keyPattern: {x: 1}, min: {x: -10}, max: {x: 10}}));
assert.eq(20, Number(reply.numObjects));
assert.gt(Number(reply.size), 20 * 100);

// How the data lies: each shard is asked once, however many collections there are.
const others = 8;
for (let i = 0; i < others; i++) {
    assert.commandWorked(db.adminCommand({shardCollection: `${testDB}.more${i}`, key: {_id: "hashed"}}));
}
const messages = () => [first, second].map((name) => {
    const commands = shardConnection(db, name).getDB("admin").serverStatus().metrics.commands;
    return Number(commands.aggregate.total);
});
const askedBefore = messages();
const [distribution] = db.getSiblingDB("admin").aggregate(
    [{$shardedDataDistribution: {}}, {$match: {ns: coll.getFullName()}}]).toArray();
const owned = {};
distribution.shards.forEach((s) => owned[s.shardName] = [Number(s.numOwnedDocuments), Number(s.numOrphanedDocs)]);
assert.eq({[first]: [30, 0], [second]: [70, 0]}, owned);
messages().forEach((n, i) => assert.lt(n - askedBefore[i], others, tojson([askedBefore, messages()])));

// Who is there.
reply = assert.commandWorked(db.adminCommand({listShards: 1}));
assert.eq(shardNames(db), reply.shards.map((s) => s._id).sort());
assert.commandFailedWithCode(testDB.runCommand({listShards: 1}), 13);
const validated = assert.commandWorked(testDB.runCommand({validate: "c"}));
assert.eq(true, validated.valid);
assert.commandWorked(testDB.dropDatabase());
