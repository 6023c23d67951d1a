/**
 * An explanation through a router is read by people and tools: one shard, merged shards and sorted merges have their names.
 * It fails if the router's stage names change, shards lose their own plans, or the sums are not the sums of the shards.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "explain_stages", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({x: x, y: -x}));
}

function winning(explained) {
    assert.commandWorked(explained);
    return explained.queryPlanner.winningPlan;
}

let plan = winning(coll.find({x: 1}).explain());
assert.eq("SINGLE_SHARD", plan.stage);
assert.eq(1, plan.shards.length);
assert.eq(second, plan.shards[0].shardName);
assert(plan.shards[0].connectionString.startsWith(
    db.getSiblingDB("config").shards.findOne({_id: second}).host.split("/")[0]), tojson(plan));
assert(plan.shards[0].winningPlan, tojson(plan));
assert(plan.shards[0].serverInfo, tojson(plan));

plan = winning(coll.find({y: 1}).explain());
assert.eq("SHARD_MERGE", plan.stage);
assert.eq(2, plan.shards.length);

plan = winning(coll.find({y: {$gt: 0}}).sort({y: 1}).explain());
assert.eq("SHARD_MERGE_SORT", plan.stage);

// Numbers of an execution are added up.
const explained = coll.find({y: {$gt: -100}}).explain("executionStats");
const stats = explained.executionStats;
assert.eq(20, stats.nReturned);
assert.eq(20, stats.totalDocsExamined);
assert.eq("SHARD_MERGE", stats.executionStages.stage);
assert.eq(["mongosPlannerVersion", "winningPlan"], Object.keys(explained.queryPlanner));
assert(explained.command.find, tojson(explained.command));
const tried = coll.find({y: 1}).explain("allPlansExecution").executionStats.allPlansExecution;
assert.eq([first, second].sort(), tried.map((shard) => shard.shardName).sort(), tojson(tried));
const shards = stats.executionStages.shards;
assert.eq(2, shards.length);
assert.eq(20, shards.reduce((n, shard) => n + shard.nReturned, 0));
assert(shards.every((shard) => shard.executionSuccess && shard.executionStages), tojson(shards));

// An owned document is told from an orphan by a stage of the shard's plan.
const nodes = [];
const walk = (stage) => {
    nodes.push(stage.stage);
    (stage.inputStages || (stage.inputStage ? [stage.inputStage] : [])).forEach(walk);
};
walk(shards[0].executionStages);
assert(nodes.includes("SHARDING_FILTER"), tojson(nodes));

// Writes, counts and distinct values.
assert.eq("SHARD_WRITE", winning(coll.explain().update({x: 1}, {$set: {z: 1}})).stage);
assert.eq("SHARD_WRITE", winning(coll.explain().remove({x: 1})).stage);
assert.eq("SINGLE_SHARD", winning(coll.explain().count({x: 1})).stage);
assert.eq("SINGLE_SHARD", winning(coll.explain().findAndModify({query: {x: 1}, update: {$set: {z: 1}}})).stage);
assert.eq(0, coll.find({z: 1}).itcount(), "an explained write writes nothing");

// Pipelines: where they are divided, and what comes after.
let pipeline = coll.explain().aggregate([{$match: {x: {$gte: 0}}}, {$group: {_id: "$y"}}]);
assert.eq([second], Object.keys(pipeline.shards));
pipeline = coll.explain().aggregate([{$group: {_id: "$y", n: {$sum: 1}}}]);
assert.eq("mongos", pipeline.mergeType);
assert.eq([first, second].sort(), Object.keys(pipeline.shards).sort());
assert(pipeline.splitPipeline.shardsPart, tojson(pipeline));
assert.eq("$group", Object.keys(pipeline.splitPipeline.mergerPart[1] || pipeline.splitPipeline.mergerPart[0])[0]);
assert.eq("object", typeof pipeline.serverInfo);
assert.eq("8.0.4", pipeline.serverInfo.version);
assert.eq(coll.getName(), pipeline.command.aggregate);
// Each shard explains its part alone, and says where it is.
for (const shard of Object.values(pipeline.shards)) {
    assert.eq(["host", "explainVersion", "stages"], Object.keys(shard));
    assert.eq(["$cursor", "$group"], shard.stages.map((stage) => Object.keys(stage)[0]), tojson(shard));
}
pipeline = coll.explain("executionStats").aggregate([{$match: {y: {$lt: 5}}}, {$sort: {y: 1}}, {$limit: 3}, {$count: "n"}]);
for (const shard of Object.values(pipeline.shards)) {
    assert(!tojson(shard).includes("$count"), tojson(shard));
}

// The explained command has variables of its own, and one on no collection is run by the router.
const variables = {aggregate: coll.getName(), pipeline: [{$group: {_id: "$$name"}}], cursor: {}, let: {name: "x"}};
pipeline = assert.commandWorked(testDB.runCommand({explain: variables, verbosity: "queryPlanner"}));
assert.eq("mongos", pipeline.mergeType);
const generated = {aggregate: 1, pipeline: [{$documents: [{a: 1}]}, {$match: {a: "$$name"}}], let: {name: 1}};
for (const command of [{explain: Object.assign({}, generated, {cursor: {}})}, Object.assign({}, generated, {explain: true})]) {
    const reply = assert.commandWorked(testDB.runCommand(command));
    assert.eq(null, reply.splitPipeline);
    assert(Array.isArray(reply.mongos.stages) && reply.mongos.stages.length > 0, tojson(reply));
}
assert.commandFailedWithCode(testDB.runCommand({explain: {aggregate: 2, pipeline: [], cursor: {}}}), 2);
assert.commandFailedWithCode(testDB.runCommand({explain: {find: 7}}), 73);
assert.commandWorked(testDB.dropDatabase());
