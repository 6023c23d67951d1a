/**
 * A collection can be sharded before it exists, while empty, or filled; its entry and its index say how.
 * It fails if the entry lacks a field, the key's index is missing or not unique where asked, or documents are lost.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, collectionEntry, freshDatabase, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const testDB = freshDatabase(db, "shard_collection_forms", first);
const shard = (name, fields) => {
    const ns = `${testDB.getName()}.${name}`;
    const reply = assert.commandWorked(db.adminCommand(Object.assign({shardCollection: ns}, fields)));
    assert.eq(ns, reply.collectionsharded);
    return collectionEntry(testDB[name]);
};
const indexes = (name) => testDB[name].getIndexes().map((i) => i.key);

// Not there yet.
let entry = shard("absent", {key: {x: 1}});
assert.eq({x: 1}, entry.key);
assert.eq(false, entry.unique);
assert(entry.lastmodEpoch instanceof ObjectId, tojson(entry));
assert(entry.timestamp instanceof Timestamp, tojson(entry));
assert(entry.lastmod instanceof Date, tojson(entry));
assert(!entry.noBalance, tojson(entry));
assert(!("defaultCollation" in entry), tojson(entry));
assert.eq(testDB.getCollectionInfos({name: "absent"})[0].info.uuid, entry.uuid);
assert.eq([{_id: 1}, {x: 1}], indexes("absent"));

// One chunk, the whole range, on the primary.
const [chunk] = chunksOf(testDB.absent);
assert.eq([{x: MinKey}, {x: MaxKey}, first], [chunk.min, chunk.max, chunk.shard]);
assert.eq(entry.uuid, chunk.uuid);
assert(chunk._id instanceof ObjectId, tojson(chunk));
assert.eq(1, chunk.history.length);
assert.eq(first, chunk.history[0].shard);
assert.eq(chunk.onCurrentShardSince, chunk.history[0].validAfter);

// By _id no index is needed; by a prefix of an index neither.
shard("byId", {key: {_id: 1}});
assert.eq([{_id: 1}], indexes("byId"));
assert.commandWorked(testDB.prefix.createIndex({x: 1, y: 1}));
shard("prefix", {key: {x: 1}});
assert.eq([{_id: 1}, {x: 1, y: 1}], indexes("prefix"));

// Unique.
entry = shard("unique", {key: {x: 1, y: 1}, unique: true});
assert.eq(true, entry.unique);
assert.eq(true, testDB.unique.getIndexes()[1].unique);
assert.commandWorked(testDB.unique.insert({x: 1, y: 1}));
assert.commandFailedWithCode(testDB.unique.insert({x: 1, y: 1}), 11000);

// Filled: the documents stay.
for (let i = 0; i < 100; i++) {
    assert.commandWorked(testDB.filled.insert({_id: i, a: {b: i}}));
}
assert.commandWorked(testDB.filled.createIndex({"a.b": 1}));
const uuid = testDB.getCollectionInfos({name: "filled"})[0].info.uuid;
entry = shard("filled", {key: {"a.b": 1}});
assert.eq(uuid, entry.uuid);
assert.eq(1, chunksOf(testDB.filled).length);
assert.eq(100, testDB.filled.find({"a.b": {$gte: 0}}).itcount());

// The old spelling, and a database that does not exist yet.
const other = db.getSiblingDB("shard_collection_forms_other");
assert.commandWorked(other.dropDatabase());
assert.commandWorked(db.adminCommand({shardcollection: other.c.getFullName(), key: {_id: "hashed"}}));
assert(db.getSiblingDB("config").databases.findOne({_id: other.getName()}));
assert.commandWorked(other.dropDatabase());

// Shards know the same.
assert.commandWorked(testDB.absent.insert({x: 1}));
const version = shardConnection(db, first).adminCommand({getShardVersion: testDB.absent.getFullName()});
assert.eq(Timestamp(1, 0), version.global);
assert.commandWorked(testDB.dropDatabase());
