/**
 * Versions order what happened to a collection: a migration raises the major part, splits and merges the minor part.
 * It fails if a commit leaves versions as they were, repeats one, or routers and shards report different ones.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, collectionEntry, freshDatabase, moveRange, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "shard_versions_progress", first);
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
const version = () => assert.commandWorked(db.adminCommand({getShardVersion: ns})).version;
const highest = () => chunksOf(coll).map((c) => c.lastmod).sort((a, b) => timestampCmp(b, a))[0];
function timestampCmp(a, b) {
    return bsonWoCompare({t: a}, {t: b});
}

assert.eq(1, chunksOf(coll).length);
assert.eq(Timestamp(1, 0), chunksOf(coll)[0].lastmod);
assert.eq(Timestamp(1, 0), version());

// A split: both halves get new minor versions.
assert.commandWorked(db.adminCommand({split: ns, middle: {x: 0}}));
assert.eq([Timestamp(1, 1), Timestamp(1, 2)], chunksOf(coll).map((c) => c.lastmod));
assert.eq(Timestamp(1, 2), version());

// A migration: the moved chunk a new major, one that stays follows it.
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);
assert.eq([Timestamp(2, 1), Timestamp(2, 0)], chunksOf(coll).map((c) => c.lastmod));

// The last chunk of a shard leaves no other to be raised.
moveRange(coll, {min: {x: MinKey}, max: {x: 0}}, second);
assert.eq([Timestamp(3, 0), Timestamp(2, 0)], chunksOf(coll).map((c) => c.lastmod));
assert.eq(Timestamp(3, 0), version());

// A merge.
assert.commandWorked(db.adminCommand({mergeChunks: ns, bounds: [{x: MinKey}, {x: MaxKey}]}));
assert.eq([Timestamp(3, 1)], chunksOf(coll).map((c) => c.lastmod));

// No two chunks ever share a version.
for (const x of [10, 20, 30, 40]) {
    assert.commandWorked(db.adminCommand({split: ns, middle: {x: x}}));
}
moveRange(coll, {min: {x: 20}, max: {x: 30}}, first);
const all = chunksOf(coll).map((c) => tojson(c.lastmod));
assert.eq(5, new Set(all).size, tojson(all));

// Router, config server and shards say the same.
const entry = collectionEntry(coll);
const routers = assert.commandWorked(db.adminCommand({getShardVersion: ns, fullMetadata: true}));
assert.eq(highest(), routers.version);
assert.eq(entry.lastmodEpoch, routers.versionEpoch);
assert.eq(entry.timestamp, routers.versionTimestamp);
assert.eq(chunksOf(coll).map((c) => [c.min, c.max]), routers.chunks);
coll.find().itcount();
for (const name of [first, second]) {
    const shards = shardConnection(db, name);
    assert.commandWorked(shards.adminCommand({_flushRoutingTableCacheUpdates: ns}));
    const reply = assert.commandWorked(shards.adminCommand({getShardVersion: ns, fullMetadata: true}));
    assert.eq(highest(), reply.global);
    const own = chunksOf(coll).filter((c) => c.shard === name);
    assert.eq(own.map((c) => c.lastmod).sort((a, b) => timestampCmp(b, a))[0], reply.metadata.shardVersion);
    assert.eq(highest(), reply.metadata.collVersion);
    assert.eq(entry.lastmodEpoch, reply.metadata.collVersionEpoch);
    assert.eq({x: 1}, reply.metadata.keyPattern);
    assert.eq(own.map((c) => [c.min, c.max]), reply.metadata.chunks);
}

// What is not sharded has no version here.
assert.commandWorked(testDB.plain.insert({_id: 1}));
assert.commandFailedWithCode(db.adminCommand({getShardVersion: testDB.plain.getFullName()}), 118);

// A new generation begins anew.
assert(coll.drop());
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.eq(Timestamp(1, 0), version());
assert.neq(entry.lastmodEpoch, collectionEntry(coll).lastmodEpoch);
assert.gt(timestampCmp(collectionEntry(coll).timestamp, entry.timestamp), 0);
assert.neq(entry.uuid, collectionEntry(coll).uuid);
assert.commandWorked(testDB.dropDatabase());
