/**
 * checkMetadataConsistency is how operators find contradictions; a clean cluster has none, each planted one is named.
 * It fails if a fault goes unseen or under another name, or a healthy cluster is accused.
 *
 * @tags: [requires_own_servers]
 */
TestData.skipCheckMetadataConsistency = true;
TestData.skipCheckingIndexesConsistentAcrossCluster = true;
TestData.skipCheckOrphans = true;
TestData.skipCheckingCatalogCacheConsistencyWithShardingCatalog = true;
TestData.skipCheckRoutingTableConsistency = true;
TestData.skipCheckShardFilteringMetadata = true;
TestData.skipCheckingUUIDsConsistentAcrossCluster = true;

const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const config = st.config0.getDB("config");
let n = 0;

/** A database of its own with the sharded collection `c` (x below 0 on the first shard) and the unsharded `plain`. */
function scene() {
    const testDB = st.s.getDB(`faults${n++}`);
    const name = testDB.getName();
    assert.commandWorked(st.s.adminCommand({enableSharding: name, primaryShard: first}));
    assert.commandWorked(st.s.adminCommand({shardCollection: `${name}.c`, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: `${name}.c`, middle: {x: 0}}));
    assert.commandWorked(st.s.adminCommand({moveRange: `${name}.c`, min: {x: 0}, max: {x: MaxKey}, toShard: second}));
    assert.commandWorked(testDB.c.insert([{x: -1}, {x: 1}]));
    assert.commandWorked(testDB.plain.insert({_id: 1}));
    assert.eq([], found(testDB));
    return {
        db: testDB,
        name: name,
        uuid: config.collections.findOne({_id: `${name}.c`}).uuid,
        ns: `${name}.c`,
        on: (shard) => (shard === first ? st.shard0 : st.shard1).getDB(name),
    };
}
function found(testDB, command) {
    const reply = assert.commandWorked(testDB.runCommand(command || {checkMetadataConsistency: 1}));
    return new DBCommandCursor(testDB, reply).toArray();
}
/** Exactly this type is found (others may accompany it), with these members of its details. */
function accused(scene, type, details) {
    const all = found(scene.db);
    const one = all.find((i) => i.type === type);
    assert(one, `${type} was not found: ${tojson(all)}`);
    assert.eq("string", typeof one.description);
    for (const [name, value] of Object.entries(details || {})) {
        assert.eq(value, one.details[name], tojson(one));
    }
    return one;
}

// A clean cluster, asked in all ways.
let s = scene();
assert.eq([], found(s.db, {checkMetadataConsistency: "c"}));
assert.eq([], found(st.s.getDB("admin")));
const reply = assert.commandWorked(s.db.runCommand({checkMetadataConsistency: 1, cursor: {batchSize: 1}}));
assert.eq(NumberLong(0), reply.cursor.id);

// A collection on a shard that the catalog does not know of there.
s = scene();
assert.commandWorked(s.on(second).createCollection("stray"));
accused(s, "MisplacedCollection", {namespace: `${s.name}.stray`, shard: second});
assert(s.on(second).stray.drop());
assert.eq([], found(s.db));

// A shard's own notes of slow operations are in the catalog of none.
s = scene();
assert.commandWorked(s.on(second).setProfilingLevel(2));
assert.eq(0, s.on(second).other.find().itcount());
assert.gt(s.on(second).system.profile.find().itcount(), 0);
assert.eq([], found(s.db));
assert.commandWorked(s.on(second).setProfilingLevel(0));

// The same name, another collection.
s = scene();
assert(s.on(second).c.drop());
assert.commandWorked(s.on(second).runCommand({create: "c"}));
const mismatch = accused(s, "CollectionUUIDMismatch", {namespace: s.ns, shard: second, uuid: s.uuid});
assert.neq(s.uuid, mismatch.details.localUUID);

// An owner without the collection.
s = scene();
assert(s.on(second).c.drop());
accused(s, "MissingLocalCollection", {namespace: s.ns, shard: second, uuid: s.uuid});

// Options differ.
s = scene();
assert.commandWorked(s.on(second).runCommand({collMod: "c", validator: {x: {$exists: true}}}));
accused(s, "CollectionOptionsMismatch", {namespace: s.ns});

// The key's index is gone from one shard; another index is there only.
s = scene();
assert.commandWorked(s.on(second).c.dropIndex({x: 1}));
accused(s, "MissingShardKeyIndex", {namespace: s.ns, shard: second, shardKey: {x: 1}});
s = scene();
assert.commandWorked(s.on(first).c.createIndex({y: 1}));
const indexes = found(s.db, {checkMetadataConsistency: 1, checkIndexes: true});
assert(indexes.some((i) => i.type === "InconsistentIndex" && i.details.namespace === s.ns), tojson(indexes));

// Chunks: a gap, an overlap, no beginning, no end, nothing at all, a bound that is no key, a past that cannot be.
const chunk = (s, min, change) => assert.commandWorked(config.chunks.update({uuid: s.uuid, min: min}, change));
s = scene();
chunk(s, {x: 0}, {$set: {min: {x: 5}}});
accused(s, "RoutingTableRangeGap", {namespace: s.ns});
s = scene();
chunk(s, {x: 0}, {$set: {min: {x: -5}}});
accused(s, "RoutingTableRangeOverlap", {namespace: s.ns});
s = scene();
chunk(s, {x: MinKey}, {$set: {min: {x: -100}}});
accused(s, "RoutingTableMissingMinKey", {namespace: s.ns});
s = scene();
chunk(s, {x: 0}, {$set: {max: {x: 100}}});
accused(s, "RoutingTableMissingMaxKey", {namespace: s.ns});
s = scene();
assert.commandWorked(config.chunks.remove({uuid: s.uuid}));
accused(s, "MissingRoutingTable", {namespace: s.ns});
s = scene();
chunk(s, {x: MinKey}, {$set: {max: {y: 0}}});
accused(s, "CorruptedChunkShardKey", {namespace: s.ns});
s = scene();
chunk(s, {x: 0}, {$set: {history: []}});
accused(s, "CorruptedChunkHistory", {namespace: s.ns});

// Zones that overlap, or whose bounds are no key.
s = scene();
assert.commandWorked(config.tags.insert([
    {ns: s.ns, tag: "a", min: {x: 0}, max: {x: 10}},
    {ns: s.ns, tag: "a", min: {x: 5}, max: {x: 15}},
]));
accused(s, "ZonesRangeOverlap", {namespace: s.ns});
s = scene();
assert.commandWorked(config.tags.insert({ns: s.ns, tag: "a", min: {y: 0}, max: {y: 10}}));
accused(s, "CorruptedZoneShardKey", {namespace: s.ns});

// A sharded collection of a database that the catalog does not have.
s = scene();
assert.commandWorked(config.databases.remove({_id: s.name}));
const hidden = found(st.s.getDB("admin"));
assert(hidden.some((i) => i.type === "HiddenShardedCollection"), tojson(hidden.map((i) => i.type)));
st.stop();
