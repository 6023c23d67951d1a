/**
 * A client that talks to a shard directly sees and changes all that the shard holds; ownership is checked only by versions.
 * It fails if requests without a version are filtered, or a direct write is refused that tools and tests rely on.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "direct_connection_to_shard", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
const direct = shardConnection(db, second).getDB(testDB.getName()).c;

// An orphan is planted, seen, changed and removed directly; through the router it does not exist.
assert.commandWorked(direct.insert([{_id: "o1", x: -5}, {_id: "o2", x: -6}, {_id: "o3", x: -7}]));
assert.eq(4, direct.find().itcount());
assert.eq(4, direct.count());
assert.eq(3, direct.count({x: {$lt: 0}}));
assert.eq([-7, -6, -5, 1], direct.distinct("x").sort((a, b) => a - b));
assert.eq(3, direct.aggregate([{$match: {x: {$lt: 0}}}]).itcount());
assert.eq(2, coll.find().itcount());
assert.eq(1, assert.commandWorked(direct.update({_id: "o1"}, {$set: {v: 1}})).nModified);
assert.eq(3, assert.commandWorked(direct.update({x: {$lt: 0}}, {$set: {w: 1}}, {multi: true})).nModified);
assert.eq(1, direct.findAndModify({query: {_id: "o1"}, update: {$inc: {v: 1}}, new: false}).v);
assert.eq(2, coll.find().itcount());
assert.eq(0, coll.find({w: 1}).itcount());
assert.eq(0, assert.commandWorked(coll.updateMany({w: 1}, {$set: {w: 2}})).matchedCount);
assert.eq(1, assert.commandWorked(direct.remove({_id: "o1"}, {justOne: true})).nRemoved);
assert.eq(2, assert.commandWorked(direct.remove({x: {$lt: 0}})).nRemoved);
assert.eq([2], direct.find().toArray().map((d) => d._id));

// The definition can be read; nothing says that there are other parts.
assert.eq(2, direct.getIndexes().length);
assert.eq(coll.exists().info.uuid, direct.exists().info.uuid);
assert.eq(1, Number(assert.commandWorked(direct.stats()).count));
assert.eq(true, assert.commandWorked(direct.validate()).valid);
const explained = direct.find({x: 1}).explain("executionStats");
assert.eq(1, explained.executionStats.nReturned);
assert(!tojson(explained.queryPlanner.winningPlan).includes("SHARDING_FILTER"), tojson(explained.queryPlanner));

// A version makes the shard check and filter.
const versions = assert.commandWorked(db.adminCommand({getShardVersion: coll.getFullName()}));
assert.commandWorked(direct.insert({_id: "o4", x: -8}));
const entry = db.getSiblingDB("config").collections.findOne({_id: coll.getFullName()});
const owned = db.getSiblingDB("config").chunks.find({uuid: entry.uuid, shard: second}).sort({lastmod: -1}).next();
const reply = assert.commandWorked(direct.runCommand({
    find: "c", shardVersion: {e: versions.versionEpoch, t: versions.versionTimestamp, v: owned.lastmod},
}));
assert.eq([2], reply.cursor.firstBatch.map((d) => d._id));
assert.commandWorked(direct.remove({_id: "o4"}));
assert.commandWorked(testDB.dropDatabase());
