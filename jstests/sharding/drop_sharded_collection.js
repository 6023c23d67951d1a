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

// Zones may wait for a collection to be sharded, and go with one that never was.
const waiting = `${testDB}.never_sharded`;
assert.commandWorked(testDB.never_sharded.insert({x: 1}));
assert.commandWorked(db.adminCommand({updateZoneKeyRange: waiting, min: {x: 0}, max: {x: 10}, zone: "dropped"}));
assert.eq({nIndexesWas: 1, ns: waiting}, (({nIndexesWas, ns}) => ({nIndexesWas, ns}))(testDB.runCommand({drop: "never_sharded"})));
assert.eq(0, config.tags.find({ns: waiting}).itcount());
assert.eq([], testDB.getCollectionNames());
// So do those of a time series, of a view, and of what is not there at all.
assert.commandWorked(testDB.createCollection("series", {timeseries: {timeField: "t", metaField: "m"}}));
assert.commandWorked(testDB.series.insert({t: new Date(), m: 1}));
assert.commandWorked(testDB.createView("view", "c", []));
const zoned = {series: "system.buckets.series", view: "view", absent: "absent"};
for (const [name, of] of Object.entries(zoned)) {
    const range = {min: {meta: 0}, max: {meta: 10}, zone: "dropped"};
    assert.commandWorked(db.adminCommand({updateZoneKeyRange: `${testDB}.${of}`, ...range}), name);
    assert.commandWorked(testDB.runCommand({drop: name}), name);
    assert.eq(0, config.tags.find({ns: `${testDB}.${of}`}).itcount(), name);
    assert(!testDB.getCollectionNames().includes(name), name);
}

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

// Those of a database go with it.
assert.commandWorked(db.adminCommand({updateZoneKeyRange: waiting, min: {x: 0}, max: {x: 10}, zone: "dropped"}));
assert.commandWorked(testDB.dropDatabase());
assert.eq(0, config.tags.find({ns: waiting}).itcount());
assert.commandWorked(db.adminCommand({removeShardFromZone: second, zone: "dropped"}));
