/**
 * A test suite starts each of its tests from the same state: a cluster goes back to a snapshot, all shards and the catalog together, whatever was
 * moved, made, dropped, sharded or resharded since, and a database is copied over all shards.
 * It fails if a document is lost or seen twice, if a router with older knowledge writes to where a range is not any more, if a version goes back, if an
 * orphan of then stays for ever, or if a cursor or a transaction from before goes on.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const [admin, config] = [st.s.getDB("admin"), st.s.getDB("config")];
const other = st.s1;
const db = st.s.getDB("d");

assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({enableSharding: "e", primaryShard: second}));
for (const name of ["c", "dropped", "resharded"]) {
    assert.commandWorked(st.s.adminCommand({shardCollection: `d.${name}`, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: `d.${name}`, middle: {x: 0}}));
    assert.commandWorked(st.s.adminCommand({moveRange: `d.${name}`, min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true}));
    assert.commandWorked(db[name].insert([...Array(40).keys()].map((i) => ({_id: i, x: i - 20, y: i % 3}))));
}
assert.commandWorked(db.c.createIndex({y: 1}));
assert.commandWorked(st.s.adminCommand({addShardToZone: first, zone: "low"}));
assert.commandWorked(st.s.adminCommand({updateZoneKeyRange: "d.c", min: {x: MinKey}, max: {x: -5}, zone: "low"}));
assert.commandWorked(db.plain.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(db.createView("v", "c", [{$match: {x: {$gte: 0}}}]));
assert.commandWorked(st.s.getDB("e").later.insert([...Array(10).keys()].map((i) => ({_id: i, x: i}))));

const strip = (d) => { ["lastmodEpoch", "timestamp", "restoredAt", "version"].forEach((f) => delete d[f]); return d; };
const catalog = () => ({
    databases: config.databases.find().sort({_id: 1}).toArray().map(strip),
    collections: config.collections.find({_id: {$ne: "config.system.sessions"}}).sort({_id: 1}).toArray().map(strip),
    chunks: config.chunks.find().sort({uuid: 1, min: 1}).toArray(),
    tags: config.tags.find().sort({_id: 1}).toArray(), zones: config.shards.find().sort({_id: 1}).toArray().map((s) => s.tags || []),
});
const contents = (router) => ["d.c", "d.dropped", "d.resharded", "d.plain", "d.v", "e.later"].map(
    (ns) => router.getCollection(ns).find().sort({_id: 1}).toArray());
const versions = () => config.collections.find({_id: /^d\./}).sort({_id: 1}).toArray().map((c) => c.timestamp);
const consistent = () => ["d", "e"].forEach(
    (name) => assert.eq([], assert.commandWorked(st.s.getDB(name).runCommand({checkMetadataConsistency: 1})).cursor.firstBatch));

const [dataThen, catalogThen] = [contents(st.s), catalog()];
assert.eq(6, assert.commandWorked(admin.runCommand({tesseraSnapshot: "base"})).collections);
assert.eq(dataThen, contents(other));

function change() {
    assert.commandWorked(db.c.remove({x: {$lt: -10}}));
    assert.commandWorked(db.c.update({}, {$set: {z: 1}}, {multi: true}));
    assert.commandWorked(db.c.insert({_id: 1000, x: 1000}));
    assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: 0}, max: {x: MaxKey}, toShard: first}));
    assert.commandWorked(st.s.adminCommand({split: "d.c", middle: {x: 10}}));
    assert.commandWorked(st.s.adminCommand({updateZoneKeyRange: "d.c", min: {x: MinKey}, max: {x: -5}, zone: null}));
    assert.commandWorked(st.s.adminCommand({removeShardFromZone: first, zone: "low"}));
    assert(db.dropped.drop());
    assert.commandWorked(st.s.adminCommand({reshardCollection: "d.resharded", key: {_id: 1}, numInitialChunks: 4}));
    assert.commandWorked(st.s.adminCommand({movePrimary: "e", to: first}));
    assert.commandWorked(st.s.adminCommand({shardCollection: "e.later", key: {_id: 1}}));
    assert.commandWorked(st.s.getDB("since").c.insert({_id: 1}));
    assert.commandWorked(st.s.adminCommand({shardCollection: "since.s", key: {_id: "hashed"}}));
    assert.commandWorked(st.s.getDB("since").s.insert([{_id: 1}, {_id: 2}, {_id: 3}]));
}

for (let round = 0; round < 2; round++) {
    change();
    assert.eq(3, st.s.getDB("since").s.find().itcount());
    // What the other router knows is of now.
    contents(other);
    const [before, time] = [versions(), assert.commandWorked(admin.runCommand({ping: 1})).$clusterTime.clusterTime];
    const open = assert.commandWorked(db.runCommand({find: "c", batchSize: 2})).cursor.id;
    const session = st.s.startSession();
    session.startTransaction();
    assert.commandWorked(session.getDatabase("d").c.insert([{_id: "a", x: -7}, {_id: "b", x: 7}]));

    assert.eq(6, assert.commandWorked(admin.runCommand({tesseraRestore: "base"})).collections);

    // Through the router that knows nothing of it, first by writes to what has moved.
    assert.commandWorked(other.getCollection("d.c").insert([{_id: 2000, x: 15}, {_id: 2001, x: -15}]));
    assert.eq(2, other.getCollection("d.c").find({_id: {$gte: 2000}}).itcount());
    assert.eq(1, st.s.getCollection("d.c").remove({x: 15, _id: 2000}).nRemoved);
    assert.eq(1, st.s.getCollection("d.c").remove({_id: 2001}).nRemoved);
    assert.eq(dataThen, contents(other), "round " + round);
    assert.eq(dataThen, contents(st.s));
    assert.eq(catalogThen, catalog());
    consistent();
    assert.eq(0, other.getCollection("since.s").find().itcount());
    assert.eq([0, 0], [st.rs0, st.rs1].map((rs) => rs.getPrimary().getDB("since").getCollectionNames().length));
    assert.eq(14, db.c.find({y: 0}).hint("y_1").itcount());
    assert.commandFailedWithCode(db.runCommand({getMore: open, collection: "c"}), ErrorCodes.CursorNotFound);
    assert.commandFailedWithCode(session.commitTransaction_forTesting(), ErrorCodes.NoSuchTransaction);
    session.endSession();
    versions().forEach((version) => before.forEach((earlier) => assert.gt(version, earlier)));
    assert.gt(assert.commandWorked(admin.runCommand({ping: 1})).$clusterTime.clusterTime, time);
}

// Orphans of then are deleted, though nobody has any now.
const onShard = (rs, ns) => rs.getPrimary().getCollection(ns).find().itcount();
const paused = configureFailPoint(st.rs0.getPrimary(), "suspendRangeDeletion");
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: MinKey}, max: {x: 0}, toShard: second}));
assert.eq(20, onShard(st.rs0, "d.c"));
assert.commandWorked(admin.runCommand({tesseraSnapshot: "orphans"}));
paused.off();
assert.soon(() => onShard(st.rs0, "d.c") === 0);
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: MinKey}, max: {x: 0}, toShard: first}));
assert.commandWorked(admin.runCommand({tesseraRestore: "orphans"}));
assert.eq(dataThen, contents(other));
assert.soon(() => onShard(st.rs0, "d.c") === 0);
assert.eq(40, onShard(st.rs1, "d.c"));
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: MinKey}, max: {x: 0}, toShard: first}));
assert.eq(dataThen, contents(other));
// Also where the deletion of now, which is of the same range, is about to end when those of then are put back.
const ending = configureFailPoint(st.rs0.getPrimary(), "hangAfterDoingDeletion");
assert.commandWorked(admin.runCommand({tesseraRestore: "orphans"}));
ending.wait();
assert.eq(0, onShard(st.rs0, "d.c"));
assert.commandWorked(admin.runCommand({tesseraRestore: "orphans"}));
ending.off();
assert.soon(() => onShard(st.rs0, "d.c") === 0);
assert.soon(() => st.rs0.getPrimary().getCollection("config.rangeDeletions").find().itcount() === 0);
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: MinKey}, max: {x: 0}, toShard: first}));
assert.eq(dataThen, contents(other));

// A copy is everywhere and goes its own way.
assert.commandFailedWithCode(admin.runCommand({tesseraFork: "d", to: "e"}), ErrorCodes.NamespaceExists);
assert.commandFailedWithCode(admin.runCommand({tesseraFork: "none", to: "f"}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(admin.runCommand({tesseraFork: "d", to: "config"}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(admin.runCommand({tesseraFork: "d", to: "E"}), ErrorCodes.DatabaseDifferCase);
for (const to of ["f", "e"]) {
    assert.eq(4, assert.commandWorked(admin.runCommand({tesseraFork: "d", to: to, replace: to === "e"})).collections);
    const copy = other.getDB(to);
    for (const name of ["c", "dropped", "resharded", "plain", "v"]) {
        assert.eq(db[name].find().sort({_id: 1}).toArray(), copy[name].find().sort({_id: 1}).toArray(), name);
    }
    assert.eq(0, copy.later.find().itcount());
    assert.eq(1, config.tags.find({ns: `${to}.c`}).itcount());
    assert.eq([], assert.commandWorked(st.s.getDB(to).runCommand({checkMetadataConsistency: 1})).cursor.firstBatch);
    assert.commandWorked(st.s.adminCommand({moveRange: `${to}.c`, min: {x: 0}, max: {x: MaxKey}, toShard: first}));
    assert.commandWorked(copy.c.insert({_id: "own", x: 3}));
    assert.eq([41, 40], [st.s.getDB(to).c.find().itcount(), db.c.find().itcount()]);
    assert.eq(1, other.getCollection("d.c").update({x: 3}, {$set: {o: 1}}).nModified);
    assert.eq(0, copy.c.find({o: 1}).itcount());
    assert.eq(1, st.s.getCollection("d.c").update({x: 3}, {$unset: {o: 1}}).nModified);
}
assert.eq(dataThen.slice(0, 5), contents(st.s).slice(0, 5));

// By name.
assert.eq([{name: "base", collections: 6}, {name: "orphans", collections: 6}], admin.runCommand({tesseraSnapshots: 1}).snapshots);
assert.commandWorked(admin.runCommand({tesseraSnapshot: "orphans", drop: true}));
assert.commandFailedWithCode(admin.runCommand({tesseraSnapshot: "orphans", drop: true}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(admin.runCommand({tesseraRestore: "orphans"}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(admin.runCommand({tesseraSnapshot: "a.b"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(st.rs0.getPrimary().adminCommand({tesseraSnapshot: "own"}), ErrorCodes.IllegalOperation);
assert.commandWorked(admin.runCommand({tesseraRestore: "base"}));
assert.eq(dataThen, contents(other));
assert.eq(catalogThen, catalog());
st.stop();
