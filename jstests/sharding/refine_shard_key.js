/**
 * A shard key can be given more fields while the collection is in use: no document moves, and a router that knows the old
 * key goes on working. It fails if a bound or a zone divides documents otherwise than before, the wrong key is accepted, or
 * what is refused leaves something behind.
 *
 * @tags: [requires_own_servers]
 */
import {ownCluster} from "jstests/sharding/libs/cluster.js";

const dbName = "refine";
const {st, first, second, config} = ownCluster(dbName, {mongos: 2, other: {rsOptions: {setParameter: {orphanCleanupDelaySecs: 900}}}});
const fresh = st.s0;
const ns = dbName + ".c";
const coll = fresh.getDB(dbName).c;
const there = st.s1.getDB(dbName).c;
assert.commandWorked(fresh.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(fresh.adminCommand({addShardToZone: second, zone: "high"}));
assert.commandWorked(fresh.adminCommand({updateZoneKeyRange: ns, min: {x: 0}, max: {x: MaxKey}, zone: "high"}));
assert.commandWorked(fresh.adminCommand({split: ns, middle: {x: 0}}));
assert.commandWorked(fresh.adminCommand({split: ns, middle: {x: 100}}));
const documents = [];
for (let i = -50; i < 150; i++) {
    documents.push({_id: i, x: i, y: i % 7});
}
assert.commandWorked(coll.insert(documents));
// The range deletion of this one is still to come when the key has changed.
assert.commandWorked(fresh.adminCommand({moveRange: ns, min: {x: 0}, max: {x: 100}, toShard: second}));
assert.eq(200, there.find().itcount());

const refine = (key, more) => fresh.adminCommand(Object.assign({refineCollectionShardKey: ns, key: key}, more));
assert.commandWorked(coll.createIndex({x: 1, y: 1}, {sparse: true}));
assert.commandFailedWithCode(refine({x: 1, y: 1}), 72, "a sparse index");
assert.commandWorked(coll.dropIndex("x_1_y_1"));
const entry = () => config.collections.findOne({_id: ns});
const before = entry();
const chunks = () => config.chunks.find({uuid: before.uuid}).sort({min: 1}).toArray();
const chunksBefore = chunks();

// Errors, which change nothing.
assert.commandFailedWithCode(refine({x: 1, y: 1}), 72, "no index");
assert.commandFailedWithCode(refine({y: 1}), 72, "no extension");
assert.commandFailedWithCode(refine({x: "hashed", y: 1}), 72, "another kind");
assert.commandFailedWithCode(refine({}), 2);
assert.commandFailedWithCode(refine({x: 1, y: -1}), 2);
assert.commandFailedWithCode(refine({x: 1, y: 1}, {nonsense: 1}), 40415);
assert.commandFailedWithCode(refine("x"), 14);
assert.commandFailedWithCode(fresh.adminCommand({refineCollectionShardKey: ns}), 40414);
assert.commandFailedWithCode(fresh.adminCommand({refineCollectionShardKey: "c", key: {x: 1}}), 73);
assert.commandFailedWithCode(fresh.adminCommand({refineCollectionShardKey: dbName + ".none", key: {x: 1}}), 118);
assert.commandFailedWithCode(fresh.adminCommand({refineCollectionShardKey: "nodb.none", key: {x: 1}}), 26);
assert.commandFailedWithCode(fresh.getDB(dbName).runCommand({refineCollectionShardKey: ns, key: {x: 1}}), 13);
assert.commandFailedWithCode(refine({x: 1, y: 1}, {collectionUUID: UUID()}), 361);
assert.eq(before, entry());
assert.eq(chunksBefore, chunks());

// The same key is no change.
assert.commandWorked(refine({x: 1}));
assert.eq(before, entry());

assert.commandWorked(coll.createIndex({x: 1, y: 1}));
const stream = st.s1.getDB(dbName).watch([], {showExpandedEvents: true});
assert.commandWorked(refine({x: 1, y: 1}));
const after = entry();
assert.eq({x: 1, y: 1}, after.key);
assert.neq(before.lastmodEpoch, after.lastmodEpoch);
assert.lt(before.timestamp, after.timestamp);
assert.eq(before.uuid, after.uuid);
assert(!("allowMigrations" in after), tojson(after));
const bounds = chunks().map((c) => [c.min, c.max]);
assert.eq(
    [
        [{x: MinKey, y: MinKey}, {x: 0, y: MinKey}],
        [{x: 0, y: MinKey}, {x: 100, y: MinKey}],
        [{x: 100, y: MinKey}, {x: MaxKey, y: MaxKey}],
    ],
    bounds);
const shardsOf = (all) => all.map((c) => [c._id, c.shard, c.history, c.onCurrentShardSince]);
assert.eq(shardsOf(chunksBefore), shardsOf(chunks()), "owners and histories stay");
const zone = config.tags.findOne({ns: ns});
assert.eq([{x: 0, y: MinKey}, {x: MaxKey, y: MaxKey}], [zone.min, zone.max]);

// Both routers, and every document once.
for (const c of [there, coll]) {
    assert.eq(200, c.find().itcount());
    assert.eq(1, c.find({x: 5}).itcount());
    assert.eq(1, assert.commandWorked(c.updateOne({x: 5, y: 5}, {$inc: {n: 1}})).modifiedCount);
}
assert.commandWorked(there.insert([{x: 500, y: {a: 1}}, {x: 500}]));
assert.eq(2, coll.findOne({_id: 5}).n);
assert.eq(2, st.shard0.getDB(dbName).c.find({x: 500}).itcount());
let event;
assert.soon(() => {
    event = stream.hasNext() ? stream.next() : undefined;
    return event && event.operationType == "refineCollectionShardKey";
});
assert.eq({shardKey: {x: 1, y: 1}, oldShardKey: {x: 1}}, event.operationDescription);
assert.eq({db: dbName, coll: "c"}, event.ns);
stream.close();

// The orphans of a range given by the old key go, and the range may come back by the new one.
for (const node of [st.shard0, st.shard1]) {
    assert.commandWorked(node.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}
assert.soon(() => st.shard0.getDB("config").rangeDeletions.countDocuments({}) == 0);
assert.eq(0, st.shard0.getDB(dbName).c.find({x: {$gte: 0, $lt: 100}}).itcount());
assert.commandWorked(fresh.adminCommand(
    {moveRange: ns, min: {x: 0, y: MinKey}, max: {x: 100, y: MinKey}, toShard: first, waitForDelete: true}));
assert.commandWorked(fresh.adminCommand({split: ns, middle: {x: 7, y: 0}}));
assert.eq(202, there.find().itcount());

// A third field, hashed; and unique keys.
assert.commandWorked(coll.createIndex({x: 1, y: 1, z: "hashed"}));
assert.commandWorked(refine({x: 1, y: 1, z: "hashed"}));
assert.eq(202, there.find().itcount());
assert.commandWorked(fresh.adminCommand({shardCollection: dbName + ".u", key: {a: 1}, unique: true}));
const unique = fresh.getDB(dbName).u;
assert.commandWorked(unique.createIndex({a: 1, b: 1}));
const refineUnique = (more) => fresh.adminCommand(
    Object.assign({refineCollectionShardKey: dbName + ".u", key: {a: 1, b: 1}}, more));
assert.commandFailedWithCode(refineUnique({}), 72, "the index must be unique as the key is");
st.stop();
