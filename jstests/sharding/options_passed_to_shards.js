/**
 * What a client adds to a command (hint, let, comment, projection, limits) must reach the shards unchanged.
 * It fails if the router drops an option, or a shard takes one that only the router may execute.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "options_passed_to_shards", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.createIndex({v: 1}));
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x, v: x * x, list: [1, 2, 3, 4]}));
}
const run = (command) => assert.commandWorked(testDB.runCommand(command));
const ids = (reply) => reply.cursor.firstBatch.map((d) => d._id);

// Hints.
const plans = (explained) => explained.queryPlanner.winningPlan.shards.map((s) => tojson(s.winningPlan));
assert(plans(coll.find({x: {$gt: -100}}).hint({v: 1}).explain()).every((p) => p.includes("v_1")));
assert(plans(coll.find({v: {$gt: -100}}).hint({$natural: 1}).explain()).every((p) => p.includes("COLLSCAN")));
assert.commandFailedWithCode(testDB.runCommand({find: "c", hint: "absent"}), 2);
assert.commandFailedWithCode(testDB.runCommand({aggregate: "c", pipeline: [{$match: {x: 1}}], cursor: {}, hint: "absent"}), 2);

// Variables.
assert.eq([-3, 3], ids(run({find: "c", filter: {$expr: {$eq: ["$v", "$$nine"]}}, let: {nine: 9}, sort: {_id: 1}})));
assert.eq([{_id: null, n: 2}], run({
    aggregate: "c", let: {nine: 9}, cursor: {},
    pipeline: [{$match: {$expr: {$eq: ["$v", "$$nine"]}}}, {$group: {_id: null, n: {$sum: 1}}}],
}).cursor.firstBatch);
run({update: "c", let: {new: 7}, updates: [{q: {x: 3}, u: [{$set: {w: "$$new"}}]}]});
assert.eq(7, coll.findOne({x: 3}).w);
assert.eq(1, run({delete: "c", let: {gone: -10}, deletes: [{q: {x: -10, $expr: {$eq: ["$x", "$$gone"]}}, limit: 1}]}).n);

// Projections, also with what only a find may have.
assert.docEq({_id: 3, x: 3, v: 9, w: 7, list: [2, 3]}, coll.findOne({x: 3}, {list: {$slice: [1, 2]}}));
assert.docEq({_id: 3, list: [2]}, coll.findOne({x: 3, list: 2}, {"list.$": 1}));
assert.docEq({_id: 3, d: 6}, coll.findOne({x: 3}, {d: {$multiply: ["$x", 2]}}));
assert.eq([4, 4], coll.find({v: 16}, {_id: 0, s: {$size: "$list"}}).toArray().map((d) => d.s));

// Limits of batches and time.
assert.eq(2, run({find: "c", limit: 2, singleBatch: true, maxTimeMS: 10000, comment: {who: "me"}}).cursor.firstBatch.length);
assert.eq([], ids(run({find: "c", batchSize: 0, noCursorTimeout: true})));
assert.commandFailedWithCode(testDB.runCommand({find: "c", maxTimeMS: -1}), [2, 9, 51024]);
assert.commandFailedWithCode(testDB.runCommand({find: "c", unknownField: 1}), 40415);
assert.commandFailedWithCode(testDB.runCommand({find: "c", filter: {$unknown: 1}}), 2);
assert.commandFailedWithCode(testDB.runCommand({find: "c", filter: {x: {$unknown: 1}}}), 2);
assert.commandFailedWithCode(testDB.runCommand({aggregate: "c", pipeline: [{$unknown: 1}], cursor: {}}), 40324);
assert.commandFailedWithCode(testDB.runCommand({aggregate: "c", pipeline: [{$match: {}}]}), 9);

// Index bounds by min and max.
assert.eq([-2, -1, 0, 1, 2], ids(run({find: "c", min: {v: 0}, max: {v: 5}, hint: {v: 1}, sort: {_id: 1}})));
assert.eq([{x: -9}, {x: -8}], run({find: "c", hint: {x: 1}, returnKey: true, sort: {x: 1}, limit: 2}).cursor.firstBatch);
assert.commandWorked(testDB.dropDatabase());
