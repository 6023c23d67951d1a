/**
 * What each stage of a plan did is told stage by stage: work is what was examined and the end, and what a stage let through is
 * its own number, not that of the whole query. It fails if stages show the query's result, or what was found twice is not told.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
const coll = db.explain_execution_stats;
coll.drop();
for (let i = 0; i < 10; i++) {
    assert.commandWorked(coll.insert({_id: i, a: i % 5, b: i, tags: ["x", "y"].slice(0, 1 + i % 2)}));
}
assert.commandWorked(coll.createIndex({b: 1}));
assert.commandWorked(coll.createIndex({tags: 1}));

function stagesOf(cursor) {
    const stats = assert.commandWorked(cursor.explain("executionStats")).executionStats;
    const stages = {};
    const walk = (stage) => {
        stages[stage.stage] = stage;
        (stage.inputStages || (stage.inputStage ? [stage.inputStage] : [])).forEach(walk);
    };
    walk(stats.executionStages);
    return stages;
}

function did(stage, works, advanced, needTime, isEOF) {
    assert.eq([works, advanced, needTime, isEOF], [stage.works, stage.advanced, stage.needTime, stage.isEOF], tojson(stage));
    assert.eq(advanced, stage.nReturned, tojson(stage));
}

let stages = stagesOf(coll.find({a: {$lt: 2}}));
did(stages.COLLSCAN, 11, 4, 6, 1);
assert.eq(10, stages.COLLSCAN.docsExamined);
assert.eq(false, stages.COLLSCAN.isCached, "the outermost stage says whether the plan was cached");

stages = stagesOf(coll.find({a: {$lt: 2}}).sort({a: 1}).limit(3));
did(stages.COLLSCAN, 11, 4, 6, 1);
did(stages.SORT, 15, 3, 11, 1);

stages = stagesOf(coll.find({a: {$lt: 2}}).limit(2));
did(stages.LIMIT, stages.COLLSCAN.works + 1, 2, stages.COLLSCAN.works - 2, 1);
assert.eq(0, stages.COLLSCAN.isEOF, "a scan that was stopped has not seen the end");

stages = stagesOf(coll.find({b: {$gte: 4}, a: 0}));
did(stages.IXSCAN, 7, 6, 0, 1);
did(stages.FETCH, 7, 1, 5, 1);
assert.eq([6, 1, 0, 0], ["keysExamined", "seeks", "dupsTested", "dupsDropped"].map((name) => stages.IXSCAN[name]));
assert.eq([6, 0], [stages.FETCH.docsExamined, stages.FETCH.alreadyHasObj]);

stages = stagesOf(coll.find({tags: {$gte: "x"}}));
assert.eq([15, 15, 5], ["keysExamined", "dupsTested", "dupsDropped"].map((name) => stages.IXSCAN[name]), tojson(stages));
did(stages.IXSCAN, 16, 10, 5, 1);

stages = stagesOf(coll.find({$or: [{b: {$lt: 3}}, {tags: "y"}]}));
assert.eq([8, 1], [stages.OR.dupsTested, stages.OR.dupsDropped], tojson(stages.OR));
assert.eq(7, stages.FETCH.nReturned);

// The plans that were tried are told in the same way.
assert.commandWorked(coll.createIndex({a: 1}));
const all = coll.find({a: 1, b: {$gt: 0}}).explain("allPlansExecution").executionStats.allPlansExecution;
assert.eq(2, all.length, tojson(all));
assert(all.every((plan) => plan.executionStages.stage === "FETCH" && plan.executionStages.inputStage.keysExamined > 0), tojson(all));
coll.drop();
