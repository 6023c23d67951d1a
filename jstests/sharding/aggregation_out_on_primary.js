/**
 * $out and $merge between unsharded collections are done where the database lives, whatever shard that is.
 * It fails if the router writes the result on another shard, or $out leaves documents of before.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "aggregation_out_on_primary", second);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(testDB.source.insert({_id: i, x: i, g: i % 4}));
}

// $out replaces the whole, and keeps the target's indexes.
assert.commandWorked(testDB.plain.insert({_id: "old"}));
assert.commandWorked(testDB.plain.createIndex({x: 1}));
assert.eq([], testDB.source.aggregate([{$match: {x: {$gte: 5}}}, {$out: "plain"}]).toArray());
assert.eq(15, testDB.plain.find().itcount());
assert.eq([0, 15], [heldBy(testDB.plain, first), heldBy(testDB.plain, second)]);
assert.eq(0, testDB.plain.find({_id: "old"}).itcount());
assert.eq(2, testDB.plain.getIndexes().length);
assert.eq(["plain", "source"], testDB.getCollectionNames().sort());

// $merge in its modes.
const merge = (stages, mode) => testDB.source.aggregate(stages.concat([{$merge: Object.assign({into: "target"}, mode)}]));
assert.commandWorked(testDB.target.insert([{_id: 3, old: true, g: -1}, {_id: 15, old: true}]));
merge([], {whenMatched: "merge", whenNotMatched: "insert"});
assert.eq(20, testDB.target.find().itcount());
assert.eq(20, heldBy(testDB.target, second));
assert.docEq({_id: 3, old: true, g: 3, x: 3}, testDB.target.findOne({_id: 3}));
merge([{$match: {x: {$lt: 12}}}], {whenMatched: "replace"});
assert.docEq({_id: 3, x: 3, g: 3}, testDB.target.findOne({_id: 3}));
assert.eq(1, testDB.target.find({old: true}).itcount());
merge([], {whenMatched: "keepExisting"});
merge([{$match: {x: 4}}], {whenMatched: [{$set: {sum: {$add: ["$x", "$$new.g", 100]}}}], whenNotMatched: "fail"});
assert.eq(104, testDB.target.findOne({_id: 4}).sum);
const beyond = {$project: {x: 1, _id: {$add: ["$_id", 100]}}};
const failing = (stages, mode, code) => assert.commandFailedWithCode(testDB.runCommand({
    aggregate: "source", pipeline: stages.concat([{$merge: Object.assign({into: "target"}, mode)}]), cursor: {},
}), code);
failing([beyond], {whenNotMatched: "fail"}, 13113);
failing([], {whenMatched: "fail"}, 11000);
merge([beyond], {whenMatched: "replace", whenNotMatched: "discard"});
assert.eq(20, testDB.target.find().itcount());
assert.commandWorked(testDB.dropDatabase());
