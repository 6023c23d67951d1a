/**
 * A view lives on the primary of its database while its collection lies on all shards; the router puts them together.
 * It fails if a view over a sharded collection shows only the primary's documents, is explained by an error, or can itself be sharded or
 * written.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "views_over_sharded", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x, g: Math.abs(x) % 2}));
}

assert.commandWorked(testDB.createView("even", "c", [{$match: {g: 0}}, {$addFields: {half: {$divide: ["$x", 2]}}}]));
assert.commandWorked(testDB.createView("summed", "even", [{$group: {_id: null, n: {$sum: 1}, top: {$max: "$x"}}}]));
assert.eq(10, testDB.even.find().itcount());
assert.eq([-10, -8], testDB.even.find().sort({x: 1}).limit(2).toArray().map((d) => d.x));
assert.eq(4, testDB.even.findOne({x: 8}).half);
assert.eq(5, testDB.even.count({x: {$gte: 0}}));
assert.eq([0], testDB.even.distinct("g"));
assert.eq([{_id: null, n: 10, top: 8}], testDB.summed.find().toArray());
assert.eq([{_id: -10, x: -10}],
          testDB.even.aggregate([{$sort: {x: 1}}, {$limit: 1}, {$project: {x: 1}}]).toArray());
assert.eq(10, testDB.even.find().batchSize(3).toArray().length);

// Explained is what is below it, on all shards.
for (const command of [
    {find: "even", filter: {half: {$gt: 1}}},
    {count: "even", query: {half: {$gt: 1}}},
    {distinct: "even", key: "x"},
    {aggregate: "even", pipeline: [{$match: {half: 1}}], cursor: {}},
]) {
    const explained = assert.commandWorked(testDB.runCommand({explain: command, verbosity: "executionStats"}), tojson(command));
    assert.eq([first, second].sort(), Object.keys(explained.shards).sort(), tojson(explained));
}
const explained = assert.commandWorked(testDB.runCommand({aggregate: "summed", pipeline: [], explain: true}));
assert.eq([first, second].sort(), Object.keys(explained.shards).sort(), tojson(explained));
assert.eq("mongos", explained.mergeType);

// What a view refuses.
const options = {shardCollection: testDB.even.getFullName(), key: {_id: 1}};
assert.commandFailedWithCode(db.adminCommand(options), 166);
assert.commandFailedWithCode(testDB.even.insert({_id: 5}), 166);
assert.commandFailedWithCode(testDB.even.update({_id: 4}, {$set: {a: 1}}), 166);
assert.commandFailedWithCode(testDB.even.remove({_id: 4}), 166);
assert.commandFailedWithCode(testDB.runCommand({findAndModify: "even", query: {_id: 4}, remove: true}), 166);
assert.commandFailedWithCode(testDB.runCommand({createIndexes: "even", indexes: [{key: {a: 1}, name: "a"}]}), 166);
assert.commandFailedWithCode(testDB.runCommand({create: "c", viewOn: "x", pipeline: []}), 48);

// The catalog shows it as a view, and a change of it holds at once.
const info = testDB.getCollectionInfos({name: "even"})[0];
assert.eq("view", info.type);
assert.eq("c", info.options.viewOn);
assert.commandWorked(testDB.runCommand({collMod: "even", viewOn: "c", pipeline: [{$match: {x: {$gte: 8}}}]}));
assert.eq(2, testDB.even.find().itcount());
assert(testDB.even.drop());
assert.eq(0, testDB.even.find().itcount());
assert.commandWorked(testDB.dropDatabase());
