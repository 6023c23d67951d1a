/**
 * A collation over shards: strings in the filter say nothing of the shard, and what shards sort by a collation is merged by it.
 * Fails when a query is sent to the owner of one spelling only, or the router merges by bytes.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "collation_over_shards", {s: 1}, [{s: "a"}], [first, second]);
const testDB = coll.getDB();
const loose = {locale: "en", strength: 2};
const words = ["Delta", "alpha", "Bravo", "charlie", "delta", "ALPHA", "bravo", "Charlie"];
assert.commandWorked(coll.insert(words.map((s, i) => ({_id: i, s: s}))));

assert.eq([0, 4], coll.find({s: "DELTA"}).collation(loose).sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq([1, 5, 2, 6, 3, 7, 0, 4], coll.find().collation(loose).sort({s: 1, _id: 1}).toArray().map(doc => doc._id));
assert.eq([1, 5, 2], coll.find().collation(loose).sort({s: 1, _id: 1}).limit(3).toArray().map(doc => doc._id));
assert.eq(2, coll.count({s: "BRAVO"}, {collation: loose}));
assert.eq(4, coll.distinct("s", {}, {collation: loose}).length);
assert.eq([2, 2, 2, 2], coll.aggregate([{$group: {_id: "$s", n: {$sum: 1}}}, {$sort: {_id: 1}}], {collation: loose}).toArray().map(doc => doc.n));
assert.eq([1, 5, 2, 6, 3, 7, 0, 4],
    coll.aggregate([{$sort: {s: 1, _id: 1}}], {collation: loose}).toArray().map(doc => doc._id));
assert.eq(2, coll.updateMany({s: "ChArLiE"}, {$set: {u: 1}}, {collation: loose}).modifiedCount);
assert.eq("charlie", coll.findAndModify({query: {s: "CHARLIE", _id: 3}, update: {$set: {v: 1}}, collation: loose}).s);
assert.eq(2, coll.deleteMany({s: "bRAVO"}, {collation: loose}).deletedCount);

// Joins run by the command's collation, whatever the other collection's default.
assert.commandWorked(testDB.createCollection("other", {collation: {locale: "fr"}}));
assert.commandWorked(testDB.other.insert({_id: 1, s: "ALpha"}));
const joined = coll.aggregate([
    {$match: {s: "alpha"}}, {$lookup: {from: "other", localField: "s", foreignField: "s", as: "o"}},
], {collation: loose}).toArray();
assert.eq([1, 1], joined.map(doc => doc.o.length));

// A default collation: the shard key stays simple, and that has to be said.
const collated = testDB.collated;
assert.commandWorked(testDB.createCollection("collated", {collation: loose}));
assert.eq(2, testDB.getCollectionInfos({name: "collated"})[0].options.collation.strength);
assert.commandWorked(collated.insert(words.map((s, i) => ({_id: i, s: s}))));
const shard = options => db.adminCommand(Object.assign({shardCollection: collated.getFullName(), key: {s: 1}}, options));
assert.commandFailedWithCode(shard({}), ErrorCodes.BadValue);
assert.commandWorked(collated.createIndex({s: 1}));
assert.commandFailedWithCode(shard({collation: {locale: "simple"}}), ErrorCodes.InvalidOptions, "the index has the default collation");
assert.commandWorked(collated.createIndex({s: 1}, {name: "simple", collation: {locale: "simple"}}));
assert.commandWorked(shard({collation: {locale: "simple"}}));
assert.commandWorked(db.adminCommand({split: collated.getFullName(), middle: {s: "a"}}));
const owner = db.getSiblingDB("config").databases.findOne({_id: testDB.getName()}).primary;
const to = owner == first ? second : first;
assert.commandWorked(db.adminCommand({moveChunk: collated.getFullName(), find: {s: "b"}, to: to, _waitForDelete: true}));
assert.eq(2, collated.find({s: "DELTA"}).itcount());
assert.eq(1, collated.find({s: "delta"}).collation({locale: "simple"}).itcount());
assert.eq([1, 5, 2, 6, 3, 7, 0, 4], collated.find().sort({s: 1, _id: 1}).toArray().map(doc => doc._id));
assert.eq(4, collated.distinct("s").length);
assert.eq(4, collated.aggregate([{$group: {_id: "$s"}}]).itcount());
assert.eq(2, collated.deleteMany({s: "ALPHa"}).deletedCount);
assert.commandFailedWithCode(collated.createIndex({s: 1, t: 1}, {unique: true}), ErrorCodes.CannotCreateIndex);
assert.commandWorked(collated.createIndex({s: 1, t: 1}, {unique: true, collation: {locale: "simple"}}));

// A view of what is sharded is read by the view's collation.
assert.commandWorked(testDB.createView("seen", coll.getName(), [], {collation: loose}));
assert.eq(2, testDB.seen.find({s: "DELTA"}).itcount());
assert.eq(2, testDB.seen.count({s: "dELTA"}));
assert.commandFailedWithCode(testDB.runCommand({find: "seen", collation: {locale: "fr"}}), ErrorCodes.OptionNotSupportedOnView);
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "collated", index: ["simple", "s_1_t_1"]}), ErrorCodes.CannotDropShardKeyIndex);
