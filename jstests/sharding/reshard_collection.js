/**
 * A collection can be given another shard key while it is in use: documents, indexes, options and the statements of retryable
 * writes go along, and every argument that makes no sense is refused.
 * It fails if a document is lost or doubled, a router goes on by the old key, or a refused request changes something.
 *
 * @tags: [requires_own_servers]
 */
import {ownCluster} from "jstests/sharding/libs/cluster.js";

const dbName = "reshard";
const {st, first, second, config} = ownCluster(dbName, {mongos: 2});
const fresh = st.s0;
const ns = dbName + ".c";
const coll = fresh.getDB(dbName).c;
const there = st.s1.getDB(dbName).c;
assert.commandWorked(fresh.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(fresh.adminCommand({split: ns, middle: {x: 500}}));
assert.commandWorked(fresh.adminCommand({moveRange: ns, min: {x: 500}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(coll.createIndex({text: 1}, {sparse: true}));
assert.commandWorked(coll.getDB().runCommand({collMod: "c", validator: {x: {$exists: true}}}));
const documents = [];
for (let i = 0; i < 1000; i++) {
    documents.push({_id: i, x: i, y: (i * 7) % 1000, text: "t" + i});
}
assert.commandWorked(coll.insert(documents));
assert.eq(1000, there.find().itcount());

const reshard = (key, more) => fresh.adminCommand(Object.assign({reshardCollection: ns, key: key}, more));
const entry = () => config.collections.findOne({_id: ns});
const chunks = () => config.chunks.find({uuid: entry().uuid}).sort({min: 1}).toArray();
const before = entry();

// Errors, which change nothing.
assert.commandFailedWithCode(fresh.adminCommand({reshardCollection: ns}), 40414);
assert.commandFailedWithCode(reshard("y"), 14);
assert.commandFailedWithCode(reshard({}), 2);
assert.commandFailedWithCode(reshard({y: -1}), 2);
assert.commandFailedWithCode(reshard({y: 1}, {nonsense: true}), 40415);
assert.commandFailedWithCode(reshard({y: 1}, {unique: true}), 2);
assert.commandFailedWithCode(reshard({y: 1}, {collation: {locale: "de"}}), 2);
assert.commandFailedWithCode(reshard({y: 1}, {numInitialChunks: 0}), 2);
assert.commandFailedWithCode(reshard({y: 1}, {numInitialChunks: 10000000}), 2);
assert.commandFailedWithCode(reshard({none: 1}, {numInitialChunks: 4}), 4952606, "one key cannot make four chunks");
assert.commandFailedWithCode(reshard({y: 1}, {zones: [{zone: "nowhere", min: {y: 1}, max: {y: 2}}]}), 2);
assert.commandFailedWithCode(reshard({y: 1}, {collectionUUID: UUID()}), 361);
assert.commandFailedWithCode(reshard({y: 1}, {shardDistribution: [{shard: "none"}]}), 70);
assert.commandFailedWithCode(reshard({y: 1}, {shardDistribution: [{shard: first, min: {y: 0}, max: {y: 1}}]}), 2);
assert.commandFailedWithCode(fresh.adminCommand({reshardCollection: dbName + ".none", key: {x: 1}}), 118);
assert.commandFailedWithCode(fresh.adminCommand({reshardCollection: "nodb.none", key: {x: 1}}), 26);
assert.commandFailedWithCode(fresh.adminCommand({reshardCollection: "config.c", key: {x: 1}}), 20);
for (const name of ["abortReshardCollection", "commitReshardCollection"]) {
    assert.commandFailedWithCode(fresh.adminCommand({[name]: ns}), 339);
}
assert.commandWorked(fresh.adminCommand({cleanupReshardCollection: ns}));
assert.commandFailedWithCode(fresh.adminCommand({unshardCollection: ns, toShard: "none"}), 70);
assert.commandFailedWithCode(fresh.adminCommand({moveCollection: ns, toShard: first}), 26);
assert.commandFailedWithCode(fresh.adminCommand({moveCollection: ns}), 40414);
const unchanged = entry();
assert.eq([before.uuid, before.key, before.timestamp], [unchanged.uuid, unchanged.key, unchanged.timestamp]);

// The same key is no change.
assert.commandWorked(reshard({x: 1}));
assert.eq(before.uuid, entry().uuid);

// By another key, with a number of chunks.
const session = st.s1.startSession({retryWrites: true});
const increment = {
    update: "c", updates: [{q: {x: 3}, u: {$inc: {n: 1}}}], lsid: {id: UUID()}, txnNumber: NumberLong(1),
};
assert.commandWorked(st.s1.getDB(dbName).runCommand(increment));
const stream = st.s1.getDB(dbName).watch([], {showExpandedEvents: true});
assert.commandWorked(reshard({y: 1}, {numInitialChunks: 4}));
let after = entry();
assert.eq({y: 1}, after.key);
assert.neq(before.uuid, after.uuid);
assert.lt(before.timestamp, after.timestamp);
assert(!("reshardingFields" in after) && !("allowMigrations" in after), tojson(after));
assert.eq(4, chunks().length);
assert.eq([first, first, second, second], chunks().map((c) => c.shard).sort());
assert.eq(0, config.chunks.countDocuments({uuid: before.uuid}));
assert.eq(0, config.reshardingOperations.countDocuments({}));
for (const c of [there, coll]) {
    assert.eq(1000, c.find().itcount());
    assert.eq(1, c.find({y: 700}).itcount());
    assert.eq(1000, c.aggregate([{$group: {_id: "$_id"}}]).itcount());
}
// What was executed before is known on the new owner.
assert.commandWorked(st.s1.getDB(dbName).runCommand(increment));
assert.eq(1, coll.findOne({x: 3}).n);
assert.eq(["_id_", "text_1", "x_1", "y_1"], coll.getIndexes().map((i) => i.name).sort());
assert.commandFailedWithCode(coll.insert({y: 1}), 121, "the validator went along");
let event;
assert.soon(() => {
    event = stream.hasNext() ? stream.next() : undefined;
    return event && event.operationType == "reshardCollection";
});
assert.eq([{y: 1}, {x: 1}], [event.operationDescription.shardKey, event.operationDescription.oldShardKey]);
// Neither the copy nor what it replaced is seen.
assert.commandWorked(there.insert({_id: "later", x: 1, y: 1}));
assert.soon(() => stream.hasNext());
event = stream.next();
assert.eq(["insert", "later"], [event.operationType, event.fullDocument._id]);
stream.close();
// And after a migration the statement is known as well.
const owner = chunks().find((c) => bsonWoCompare({k: c.min}, {k: {y: 21}}) <= 0 && bsonWoCompare({k: {y: 21}}, {k: c.max}) < 0);
assert.commandWorked(fresh.adminCommand(
    {moveRange: ns, min: owner.min, max: owner.max, toShard: owner.shard == first ? second : first}));
assert.commandWorked(st.s1.getDB(dbName).runCommand(increment));
assert.eq(1, coll.findOne({x: 3}).n);

// A unique index that does not go with the new key.
assert.commandWorked(coll.createIndex({y: 1, text: 1}, {unique: true}));
assert.commandFailedWithCode(reshard({x: 1}), 72);
assert.commandWorked(coll.dropIndex("y_1_text_1"));

// Hashed, then zones, then the same key again by force.
assert.commandWorked(reshard({y: "hashed"}));
assert.eq(1001, there.find().itcount());
assert.commandWorked(fresh.adminCommand({addShardToZone: second, zone: "low"}));
assert.commandWorked(reshard({x: 1}, {zones: [{zone: "low", min: {x: MinKey}, max: {x: 300}}], numInitialChunks: 3}));
assert.eq([{tag: "low", min: {x: MinKey}, max: {x: 300}}],
          config.tags.find({ns: ns}, {_id: 0, tag: 1, min: 1, max: 1}).toArray());
assert(chunks().filter((c) => bsonWoCompare({k: c.max}, {k: {x: 300}}) <= 0).every((c) => c.shard == second));
assert.commandFailedWithCode(reshard({y: 1}), 2, "zones must be given when there are some");
let uuid = entry().uuid;
assert.commandWorked(reshard({x: 1}, {forceRedistribution: true, zones: [], shardDistribution: [{shard: second}]}));
assert.neq(uuid, entry().uuid);
assert(chunks().every((c) => c.shard == second));
assert.eq(1001, coll.find().itcount());
assert.eq(0, config.tags.countDocuments({ns: ns}));

// An array in the new key.
assert.commandWorked(coll.insert({_id: "array", x: 1, z: [1, 2]}));
assert.commandFailedWithCode(reshard({z: 1}), 61);
assert.commandWorked(coll.deleteOne({_id: "array"}));

// Two documents with one _id, which may not come to one shard.
const twice = fresh.getDB(dbName).twice;
assert.commandWorked(fresh.adminCommand({shardCollection: twice.getFullName(), key: {x: 1}}));
assert.commandWorked(fresh.adminCommand({split: twice.getFullName(), middle: {x: 0}}));
assert.commandWorked(fresh.adminCommand(
    {moveRange: twice.getFullName(), min: {x: 0}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(twice.insert([{_id: 1, x: -1}, {_id: 1, x: 1}]));
assert.commandFailedWithCode(fresh.adminCommand({unshardCollection: twice.getFullName(), toShard: first}), 11000);
assert.eq(2, twice.find().itcount());
assert.commandWorked(twice.deleteOne({x: 1}));

// Brought together, and what is not sharded is not sharded.
assert.commandWorked(fresh.adminCommand({unshardCollection: ns, toShard: second}));
after = config.collections.findOne({_id: ns});
assert.eq([true, {_id: 1}], [after.unsplittable, after.key]);
assert.eq(1001, there.find().itcount());
assert.eq(1001, st.shard1.getDB(dbName).c.find().itcount());
assert.commandFailedWithCode(fresh.adminCommand({unshardCollection: ns}), 118);
assert.commandFailedWithCode(reshard({x: 1}), 118);
assert.commandWorked(coll.updateMany({}, {$set: {v: 1}}));
assert.commandWorked(there.updateOne({x: 5}, {$set: {x: 6, w: 1}}));
assert.eq(1, coll.find({w: 1}).itcount());
assert.eq(0, fresh.getDB(dbName).checkMetadataConsistency().toArray().length);
// And sharded once more.
assert.commandWorked(fresh.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.eq({x: 1}, entry().key);
assert.eq(1001, there.find().itcount());
st.stop();
