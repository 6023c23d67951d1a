/**
 * Dropping a sharded collection removes it from every shard and all that the config server knew of it.
 * It fails if a shard keeps documents, chunks or zones outlive the collection, or a new one of the name sees old data.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshCollection, shardByRanges, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "drop_sharded_collection", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
const config = db.getSiblingDB("config");
const ns = coll.getFullName();
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
assert.commandWorked(coll.createIndex({y: 1}));
assert.commandWorked(db.adminCommand({addShardToZone: second, zone: "dropped"}));
assert.commandWorked(db.adminCommand({updateZoneKeyRange: ns, min: {x: 0}, max: {x: 10}, zone: "dropped"}));
const entry = collectionEntry(coll);

// With a UUID that is another's: refused.
assert.commandFailedWithCode(testDB.runCommand({drop: "c", collectionUUID: UUID()}), 361);
assert.eq(2, coll.find().itcount());

const reply = assert.commandWorked(testDB.runCommand({drop: "c"}));
assert.eq(1, reply.ok);
assert.eq(null, collectionEntry(coll));
assert.eq(0, config.chunks.find({uuid: entry.uuid}).itcount());
assert.eq(0, config.tags.find({ns: ns}).itcount());
for (const name of [first, second]) {
    const shard = shardConnection(db, name);
    assert.eq([], shard.getDB(testDB.getName()).getCollectionInfos({name: "c"}), name);
    assert.soon(() => shard.getDB("config").getCollection(`cache.chunks.${ns}`).find().itcount() === 0);
}
assert.eq([], testDB.getCollectionNames());
assert.eq(0, coll.find().itcount());
assert.eq(0, coll.count());

// Again: nothing is there, and that is no error.
assert.commandWorked(testDB.runCommand({drop: "c"}));

// What comes next has nothing to do with it.
assert.commandWorked(coll.insert({_id: 1, x: 5}));
assert.eq(1, coll.find().itcount());
assert.eq(1, coll.getIndexes().length);
assert.eq(1, shardConnection(db, first).getDB(testDB.getName()).c.find().itcount());
assert(coll.drop());
shardByRanges(coll, {z: 1}, [{z: 0}], [second, first]);
assert.neq(entry.uuid, collectionEntry(coll).uuid);
assert.eq(0, coll.find().itcount());
assert.eq(2, coll.getIndexes().length);
assert.commandWorked(db.adminCommand({removeShardFromZone: second, zone: "dropped"}));
assert.commandWorked(testDB.dropDatabase());
