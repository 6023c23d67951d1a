/**
 * An unsharded collection lies on the primary of its database; the router creates the database with the first write.
 * It fails if an unsharded write goes to another shard, or reading what does not exist creates a database.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, heldBy, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const config = db.getSiblingDB("config");

const onSecond = freshDatabase(db, "unsharded_on_primary", second);
assert.commandWorked(onSecond.c.insert([{_id: 1}, {_id: 2}]));
assert.eq([0, 2], [heldBy(onSecond.c, first), heldBy(onSecond.c, second)]);
assert.eq([second], shardsInPlan(onSecond.c.find().explain()));
assert.eq([second], shardsInPlan(onSecond.c.explain().aggregate([{$group: {_id: null}}])));
assert.eq(null, config.collections.findOne({_id: onSecond.c.getFullName(), unsplittable: {$ne: true}}));

// Reading and dropping what is not there creates nothing.
const absent = db.getSiblingDB("unsharded_on_primary_absent");
assert.commandWorked(absent.dropDatabase());
assert.eq(0, absent.c.find().itcount());
assert.eq(0, absent.c.count());
assert.eq([], absent.c.distinct("a"));
assert.eq(0, absent.c.aggregate([{$match: {}}]).itcount());
assert.eq([], absent.getCollectionNames());
absent.c.drop();
assert.commandFailedWithCode(absent.runCommand({listIndexes: "c"}), 26);
assert.eq(null, config.databases.findOne({_id: absent.getName()}));

// The first insert makes the database, with a version and a primary.
assert.commandWorked(absent.c.insert({_id: 1}));
const entry = config.databases.findOne({_id: absent.getName()});
assert.contains(entry.primary, shardNames(db));
assert.eq(1, entry.version.lastMod);
assert(entry.version.uuid, tojson(entry));
assert(entry.version.timestamp instanceof Timestamp, tojson(entry));
assert.eq(1, heldBy(absent.c, entry.primary));

// Names that differ only in case are one database too many.
const twin = db.getSiblingDB("UNSHARDED_on_primary_absent");
assert.commandFailedWithCode(twin.c.insert({_id: 1}), 13297);
assert.commandFailedWithCode(db.adminCommand({enableSharding: twin.getName()}), 13297);
assert.commandWorked(absent.dropDatabase());
assert.eq(null, config.databases.findOne({_id: absent.getName()}));

// Capped and other options hold on the primary.
assert.commandWorked(onSecond.createCollection("capped", {capped: true, size: 4096, max: 3}));
for (let i = 0; i < 10; i++) {
    assert.commandWorked(onSecond.capped.insert({_id: i}));
}
assert.eq([7, 8, 9], onSecond.capped.find().toArray().map((d) => d._id));
assert.commandFailedWithCode(onSecond.createCollection("capped", {capped: false}), 48);
assert.commandWorked(onSecond.runCommand({create: "valid", validator: {a: {$gt: 0}}}));
assert.commandFailedWithCode(onSecond.valid.insert({a: 0}), 121);
assert.commandWorked(onSecond.dropDatabase());
