/**
 * explain shows how a query is answered, at three levels of detail, without changing anything.
 * Fails when a level shows more or less than it should, the plan names another access path, or the counts are wrong.
 */
import {planHasStage, planIndexes, planStageNames} from "jstests/libs/plan_stages.js";

const coll = db.explain_find;
coll.drop();
assert.commandWorked(coll.insert([...Array(100).keys()].map(i => ({_id: i, a: i % 10, b: i}))));
assert.commandWorked(coll.createIndex({a: 1}));

const planned = coll.find({a: 3}).explain("queryPlanner");
assert.eq(1, planned.ok);
assert(planned.hasOwnProperty("queryPlanner"), tojson(planned));
assert(!planned.hasOwnProperty("executionStats"));
// A router shows one such plan for each shard.
for (const node of planned.queryPlanner.winningPlan.shards || [planned]) {
    assert.contains(node.explainVersion, ["1", "2"]);
    assert.eq(db.version(), node.serverInfo.version);
}
assert.eq(["a_1"], planIndexes(planned));

const executed = coll.find({a: 3}).explain("executionStats");
assert.eq(10, executed.executionStats.nReturned);
assert.eq(10, executed.executionStats.totalKeysExamined);
assert.eq(10, executed.executionStats.totalDocsExamined);
assert.gte(executed.executionStats.executionTimeMillis, 0);

const scanned = coll.find({b: {$lt: 5}}).explain("executionStats");
assert(planHasStage(scanned, "COLLSCAN"));
assert.eq(5, scanned.executionStats.nReturned);
assert.eq(100, scanned.executionStats.totalDocsExamined);
assert.eq(0, scanned.executionStats.totalKeysExamined);

// Which stages there are.
assert(planHasStage(coll.find({b: 5}).sort({b: 1}).explain(), "SORT"));
assert(planHasStage(coll.find().hint({a: 1}).limit(1).explain(), "LIMIT"));
assert(planHasStage(coll.find({no: 1, _id: {$gt: 3}}).hint({_id: 1}).explain(), "FETCH"));
const byId = planStageNames(coll.find({_id: 5}).explain());
assert(byId.some(stage => ["IDHACK", "EXPRESS_IXSCAN", "IXSCAN", "CLUSTERED_IXSCAN"].includes(stage)), tojson(byId));
assert(planHasStage(db.explain_find_none.find({a: 1}).explain(), "EOF"));

const name = coll.getName();
assert.commandFailedWithCode(db.runCommand({explain: {find: name}, verbosity: "everything"}), ErrorCodes.BadValue);
for (const command of [{ping: 1}, {connectionStatus: 1}, {insert: name, documents: []}, {logRotate: 1}]) {
    assert.commandFailedWithCode(db.runCommand({explain: command}), ErrorCodes.IllegalOperation);
}
assert.commandFailedWithCode(db.runCommand({explain: {unheardOf: 1}}), ErrorCodes.CommandNotFound);
assert.commandFailedWithCode(db.runCommand({explain: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({explain: {find: name, filter: {a: {$bad: 1}}}}), ErrorCodes.BadValue);
