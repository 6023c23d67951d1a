/**
 * Results are compared without regard to order where a test says so, errors of pipelines are expected by code and text,
 * and stages, log lines and indexes are found in what servers answer.
 * It fails if unequal results pass as equal, or if a stage that is there is not found.
 *
 * @tags: [requires_own_servers]
 */
import { anyEq, arrayEq, assertArrayEq, assertErrCodeAndErrMsgContains, assertErrorCode, documentEq, orderedArrayEq, testExpression } from "jstests/aggregation/extras/utils.js";
import { aggPlanHasStage, getAggPlanStage, getExecutionStages, getPlanStage, getPlanStages, getQueryPlanner, getRejectedPlans, getWinningPlanFromExplain, hasRejectedPlans, isCollscan, isIndexOnly, isIxscan, planHasStage } from "jstests/libs/query/analyze_plan.js";
import { findMatchingLogLine, findMatchingLogLines } from "jstests/libs/log.js";
import { GetIndexHelpers } from "jstests/libs/get_index_helpers.js";
import { extractUUIDFromObject, getUUIDFromListCollections } from "jstests/libs/uuid_util.js";
import { getCollName, getDBName } from "jstests/libs/namespace_utils.js";
import { assertDropAndRecreateCollection } from "jstests/libs/collection_drop_recreate.js";
import { FeatureFlagUtil } from "jstests/libs/feature_flag_util.js";
import { waitForCurOpByFilter } from "jstests/libs/curop_helpers.js";
import { startParallelOps } from "jstests/libs/test_background_ops.js";

assert(arrayEq([{ a: 1, b: 2 }, { a: 3 }], [{ a: 3 }, { b: 2, a: 1 }]));
assert(!arrayEq([1, 1, 2], [1, 2, 2]));
assert(!arrayEq([1], [1, 1]));
assert(!anyEq({ a: 1 }, { a: 1, b: null }));
assert(anyEq({ a: [1, { b: 2 }] }, { a: [{ b: 2 }, 1] }));
assert(!orderedArrayEq([1, 2], [2, 1]));
assert(documentEq({ a: 1, _id: 5 }, { a: 1, _id: 6 }, false, undefined, ["_id"]));
assert(arrayEq([{ _id: 1, a: 1 }], [{ _id: 2, a: 1 }], false, undefined, ["_id"]));
assert(anyEq(NumberLong(5), 5) && !anyEq(ObjectId(), ObjectId()));
assert.throws(() => assertArrayEq({ actual: [1], expected: [2] }));

const conn = MongoRunner.runMongod();
const db = conn.getDB("test");
globalThis.db = db;
const coll = assertDropAndRecreateCollection(db, "c");
assert.commandWorked(coll.insert([{ _id: 1, a: 1, b: 1 }, { _id: 2, a: 2, b: 1 }]));
assertErrorCode(coll, [{ $noSuchStage: {} }], 40324);
assertErrCodeAndErrMsgContains(coll, { $noSuchStage: {} }, 40324, "$noSuchStage");
assert.throws(() => assertErrorCode(coll, [{ $match: {} }], 40324));
testExpression(coll, { $add: [1, 2] }, 3);

assert(isCollscan(db, coll.find({ a: 1 }).explain()));
assert.commandWorked(coll.createIndexes([{ a: 1 }, { b: 1 }]));
const plan = coll.find({ a: 1, b: 1 }).explain("executionStats");
assert(isIxscan(db, plan) && planHasStage(db, getWinningPlanFromExplain(plan), "FETCH") && !isCollscan(db, plan) && !isIndexOnly(db, plan));
assert.eq("c", getQueryPlanner(plan).namespace.split(".")[1]);
assert.eq(1, getPlanStages(plan, "IXSCAN").length);
assert.eq(null, getPlanStage(plan, "SORT"));
assert(hasRejectedPlans(plan) === (getRejectedPlans(plan).length > 0));
assert.eq(1, getExecutionStages(plan).length);
const pipeline = coll.explain().aggregate([{ $match: { a: 1 } }, { $group: { _id: "$b" } }]);
assert(aggPlanHasStage(pipeline, "$group") || aggPlanHasStage(pipeline, "GROUP"), tojson(pipeline));
assert.neq(null, getAggPlanStage(pipeline, "IXSCAN"));

const { log } = assert.commandWorked(db.adminCommand({ getLog: "global" }));
assert.neq(null, findMatchingLogLine(log, { id: 23016, port: conn.port }));
assert.eq(null, findMatchingLogLine(log, { id: 23016, port: 1 }));
assert.eq(1, [...findMatchingLogLines(log, { id: 23016 })].length);
assert.eq("a_1", GetIndexHelpers.findByKeyPattern(coll.getIndexes(), { a: 1 }).name);
assert.eq(null, GetIndexHelpers.findByName(coll.getIndexes(), "z_1"));
assert.eq(36, extractUUIDFromObject(getUUIDFromListCollections(db, "c")).length);
assert.eq(["test", "a.b"], [getDBName("test.a.b"), getCollName("test.a.b")]);
assert.eq(false, FeatureFlagUtil.isPresentAndEnabled(db, "NoSuchFlag"));

const ops = startParallelOps(conn, (n) => n + 1, [4]);
assert.eq(5, ops.join());
assert(ops.isFinished());

const sleeping = startParallelShell(() => db.adminCommand({ configureFailPoint: "failCommand", mode: { times: 1 },
    data: { failCommands: ["count"], blockConnection: true, blockTimeMS: 500 } }) && db.runCommand({ count: "c", comment: "to be seen" }));
assert.eq(1, waitForCurOpByFilter(db, { "command.comment": "to be seen" }).length);
sleeping();
MongoRunner.stopMongod(conn);
