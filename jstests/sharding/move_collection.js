/**
 * An unsharded collection can live on any shard: routers find it there, and drop, rename, movePrimary, lookups, views and
 * removeShard know of it. It fails if a command looks for it on the primary of its database, or takes it for sharded.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const fresh = st.s0;
const dbName = "moves";
assert.commandWorked(fresh.adminCommand({enableSharding: dbName, primaryShard: first}));
const here = fresh.getDB(dbName);
const there = st.s1.getDB(dbName);
const config = fresh.getDB("config");
const move = (name, to) => fresh.adminCommand({moveCollection: `${dbName}.${name}`, toShard: to});
const entry = (name) => config.collections.findOne({_id: `${dbName}.${name}`});
assert.commandWorked(here.c.createIndex({x: 1}, {unique: true}));
assert.commandWorked(here.c.insert([{_id: 1, x: 1}, {_id: 2, x: 2}, {_id: 3, x: [3, 4]}]));
assert.eq(3, there.c.find().itcount());

// Errors.
assert.commandFailedWithCode(move("c", "none"), 70);
assert.commandFailedWithCode(move("none", second), 26);
assert.commandFailedWithCode(move("system.views", second), 20);
assert.commandFailedWithCode(fresh.adminCommand({moveCollection: "nodb.c", toShard: second}), 26);
assert.commandFailedWithCode(fresh.adminCommand({moveCollection: dbName + ".c", toShard: 1}), 14);
assert.commandFailedWithCode(fresh.adminCommand({abortMoveCollection: dbName + ".c"}), 339);
assert.commandWorked(here.createView("v", "c", [{$match: {_id: {$gt: 1}}}]));
assert.commandFailedWithCode(move("v", second), 166);
assert.eq(null, entry("c"));

assert.commandWorked(move("c", second));
assert.eq([true, {_id: 1}, [second]],
          [entry("c").unsplittable, entry("c").key, config.chunks.distinct("shard", {uuid: entry("c").uuid})]);
assert.eq([0, 3], [st.shard0, st.shard1].map((s) => s.getDB(dbName).c.find().itcount()));
for (const db of [there, here]) {
    assert.eq(3, db.c.find().itcount());
    assert.eq(3, db.c.countDocuments({}));
    assert.eq(3, db.c.count());
    assert.eq(1, db.c.find({x: 4}).itcount());
    assert.eq([1, 2, 3, 4], db.c.distinct("x").sort());
    assert.eq(2, db.v.find().itcount(), "a view finds it");
    assert.eq(["_id_", "x_1"], db.c.getIndexes().map((i) => i.name).sort());
    assert.eq(1, db.getCollectionNames().filter((n) => n == "c").length);
    assert(!db.getCollectionNames().some((n) => n.startsWith("system.resharding")), tojson(db.getCollectionNames()));
    assert.eq(false, assert.commandWorked(db.runCommand({collStats: "c"})).sharded);
}
assert.commandFailedWithCode(there.c.insert({_id: 9, x: 1}), 11000);
assert.commandWorked(there.c.insert({x: 10}));
assert.eq(1, assert.commandWorked(here.c.updateOne({x: 10}, {$set: {x: 11}})).modifiedCount);
assert.eq(12, here.c.findAndModify({query: {x: 11}, update: {$inc: {x: 1}}, new: true}).x);
assert.eq(1, assert.commandWorked(here.c.updateOne({x: 99}, {$set: {y: 1}}, {upsert: true})).upsertedCount ||
             here.c.find({x: 99}).itcount());
assert.eq(2, assert.commandWorked(there.c.deleteMany({x: {$gt: 5}})).deletedCount);
assert.commandWorked(there.c.createIndex({z: 1}));
assert.commandWorked(here.c.dropIndex("z_1"));

// Joins with collections elsewhere.
assert.commandWorked(here.other.insert([{_id: 1, ref: 1}, {_id: 2, ref: 2}]));
const lookup = (from, local, foreign) => [{$lookup: {from: from, localField: local, foreignField: foreign, as: "found"}}];
for (const db of [there, here]) {
    assert.eq([1, 1], db.other.aggregate(lookup("c", "ref", "_id")).toArray().map((d) => d.found.length));
    assert.eq(2, db.c.aggregate(lookup("other", "_id", "ref")).toArray().filter((d) => d.found.length == 1).length);
    assert.eq(5, db.c.aggregate([{$unionWith: "other"}]).itcount());
}
assert.eq(3, here.c.aggregate([{$sort: {_id: -1}}, {$limit: 3}]).itcount());
const session = st.s1.startSession();
session.startTransaction();
assert.commandWorked(session.getDatabase(dbName).c.insert({_id: "t", x: "t"}));
assert.commandWorked(session.getDatabase(dbName).other.insert({_id: "t"}));
assert.commandWorked(session.commitTransaction_forTesting());
assert.eq([1, 1], [here.c.find({_id: "t"}).itcount(), here.other.find({_id: "t"}).itcount()]);

// Chunk commands take it for what it is.
const ns = dbName + ".c";
assert.commandFailedWithCode(fresh.adminCommand({moveRange: ns, min: {_id: MinKey}, max: {_id: MaxKey}, toShard: first}), 118);
assert.commandFailedWithCode(fresh.adminCommand({split: ns, middle: {_id: 5}}), 118);
assert.commandFailedWithCode(fresh.adminCommand({refineCollectionShardKey: ns, key: {_id: 1, x: 1}}), 118);
assert.eq(0, here.checkMetadataConsistency().toArray().length);

// movePrimary leaves it where it is, and brings what is not tracked.
assert.commandWorked(fresh.adminCommand({movePrimary: dbName, to: second}));
assert.eq([4, 3], [there.c.find().itcount(), there.other.find().itcount()]);
assert.commandWorked(fresh.adminCommand({movePrimary: dbName, to: first}));
assert.eq([4, 3], [here.c.find().itcount(), here.other.find().itcount()]);
assert.eq(4, st.shard1.getDB(dbName).c.find().itcount());

assert.eq(["c", "other", "system.views", "v"], here.getCollectionNames().sort());

// Rename, over another and under another name; drop; made anew on the primary.
assert.commandWorked(here.c.renameCollection("d"));
assert.eq([0, 4], [there.c.find().itcount(), there.d.find().itcount()]);
assert.eq(true, entry("d").unsplittable);
assert.commandWorked(here.d.renameCollection("other", true));
assert.eq([0, 4], [there.d.find().itcount(), there.other.find().itcount()]);
assert(there.other.drop());
assert.eq(0, here.other.find().itcount());
assert.eq(null, entry("other"));
assert.commandWorked(there.other.insert({_id: 1}));
assert.eq(1, st.shard0.getDB(dbName).other.find().itcount());

// Untracked again, which needs it to be on the primary.
assert.commandWorked(move("other", second));
assert.commandFailedWithCode(fresh.adminCommand({untrackUnshardedCollection: dbName + ".other"}), 96);
assert.commandWorked(move("other", first));
assert.commandWorked(fresh.adminCommand({untrackUnshardedCollection: dbName + ".other"}));
assert.eq(null, entry("other"));
assert.eq(1, there.other.find().itcount());
assert.commandWorked(fresh.adminCommand({untrackUnshardedCollection: dbName + ".other"}), "once more is no error");
assert.commandWorked(fresh.adminCommand({shardCollection: dbName + ".s", key: {x: 1}}));
assert.commandFailedWithCode(fresh.adminCommand({untrackUnshardedCollection: dbName + ".s"}), 73);

// Made where it is wanted.
assert.commandWorked(here.runCommand({createUnsplittableCollection: "made", dataShard: second}));
assert.commandWorked(there.made.insert({_id: 1}));
assert.eq(1, st.shard1.getDB(dbName).made.find().itcount());

// A capped collection keeps its order.
assert.commandWorked(here.createCollection("capped", {capped: true, size: 4096, max: 5}));
for (let i = 0; i < 8; i++) {
    assert.commandWorked(here.capped.insert({_id: i}));
}
assert.commandWorked(move("capped", second));
assert.eq([3, 4, 5, 6, 7], there.capped.find().toArray().map((d) => d._id));
assert.commandWorked(there.capped.insert({_id: 8}));
assert.eq([4, 5, 6, 7, 8], here.capped.find().toArray().map((d) => d._id));

// Its collation goes along: routers know that strings which are equal by it may be on two shards.
assert.commandWorked(here.createCollection("collated", {collation: {locale: "en", strength: 2}}));
assert.commandWorked(here.collated.createIndex({k: 1}, {collation: {locale: "simple"}}));
assert.commandWorked(here.collated.insert([{_id: 1, k: "A"}, {_id: 2, k: "a"}]));
assert.commandWorked(move("collated", second));
const collated = dbName + ".collated";
assert.commandWorked(fresh.adminCommand({shardCollection: collated, key: {k: 1}, collation: {locale: "simple"}}));
assert.commandWorked(fresh.adminCommand({split: collated, middle: {k: "a"}}));
assert.commandWorked(fresh.adminCommand({moveRange: collated, min: {k: "a"}, max: {k: MaxKey}, toShard: first}));
for (const db of [there, here]) {
    assert.eq([1, 2], db.collated.find({k: "a"}).toArray().map((d) => d._id).sort());
}
assert(here.collated.drop());

// What keeps a shard from being removed is named, and moving it helps.
let reply = assert.commandWorked(fresh.adminCommand({removeShard: second}));
assert.eq([dbName + ".capped", dbName + ".made"], reply.collectionsToMove.sort());
reply = assert.commandWorked(fresh.adminCommand({removeShard: second}));
assert.eq(["ongoing", 2], [reply.state, Number(reply.remaining.collectionsToMove)]);
assert.commandFailedWithCode(move("other", second), 70, "it is draining");
for (const name of ["capped", "made"]) {
    assert.commandWorked(move(name, first));
}
assert.soon(() => assert.commandWorked(fresh.adminCommand({removeShard: second})).state == "completed");
assert.eq([5, 1], [here.capped.find().itcount(), there.made.find().itcount()]);
assert.commandWorked(here.dropDatabase());
assert.eq(0, config.collections.countDocuments({_id: {$regex: "^moves\\."}}));
st.stop();
