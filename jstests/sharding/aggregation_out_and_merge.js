/**
 * $merge through a router writes each document where the target's ranges lie; $out replaces an unsharded collection.
 * It fails if a shard merges into its own copy of the target, or $out leaves old documents or writes on another shard.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, heldBy, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "aggregation_out_and_merge", first);
const source = testDB.source;
shardByRanges(source, {x: 1}, [{x: 10}], [first, second]);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(source.insert({_id: i, x: i, g: i % 4}));
}

// $out from one unsharded collection into another, which is replaced as a whole.
assert.commandWorked(testDB.from.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(testDB.plain.insert({_id: "old"}));
testDB.from.aggregate([{$match: {_id: {$gte: 2}}}, {$out: "plain"}]);
assert.eq([2], testDB.plain.find().toArray().map((d) => d._id));
assert.eq(1, heldBy(testDB.plain, first));

// $merge goes to the owner of each document.
const target = testDB.target;
shardByRanges(target, {_id: 1}, [{_id: 10}], [second, first]);
assert.commandWorked(target.insert([{_id: 3, old: true, g: -1}, {_id: 15, old: true}]));
source.aggregate([{$merge: {into: "target", whenMatched: "merge", whenNotMatched: "insert"}}]);
assert.eq(20, target.find().itcount());
assert.eq(10, heldBy(target, first));
assert.eq(10, heldBy(target, second));
assert.docEq({_id: 3, old: true, g: 3, x: 3}, target.findOne({_id: 3}));

source.aggregate([{$match: {x: {$lt: 12}}}, {$merge: {into: "target", whenMatched: "replace"}}]);
assert.docEq({_id: 3, x: 3, g: 3}, target.findOne({_id: 3}));
assert.eq(1, target.find({old: true}).itcount());
source.aggregate([{$merge: {into: "target", whenMatched: "keepExisting"}}]);
source.aggregate([
    {$match: {x: 4}},
    {$merge: {into: "target", whenMatched: [{$set: {sum: {$add: ["$x", "$$new.g", 100]}}}], whenNotMatched: "fail"}},
]);
assert.eq(104, target.findOne({_id: 4}).sum);
assert.commandFailedWithCode(testDB.runCommand({
    aggregate: "source",
    pipeline: [{$project: {x: 1, _id: {$add: ["$_id", 100]}}}, {$merge: {into: "target", whenNotMatched: "fail"}}],
    cursor: {},
}), 13113);
assert.commandFailedWithCode(testDB.runCommand({
    aggregate: "source", pipeline: [{$merge: {into: "target", whenMatched: "fail"}}], cursor: {},
}), 11000);
source.aggregate([
    {$project: {x: 1, _id: {$add: ["$_id", 100]}}},
    {$merge: {into: "target", whenMatched: "replace", whenNotMatched: "discard"}},
]);
assert.eq(20, target.find().itcount());

// Into another database, that does not exist yet.
const other = db.getSiblingDB("aggregation_out_and_merge_other");
other.dropDatabase();
source.aggregate([{$group: {_id: "$g", n: {$sum: 1}}}, {$merge: {into: {db: other.getName(), coll: "t"}}}]);
assert.eq([5, 5, 5, 5], other.t.find().toArray().map((d) => d.n));
assert.commandWorked(other.dropDatabase());
assert.commandWorked(testDB.dropDatabase());
