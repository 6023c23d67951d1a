// Stages of the plans that explain shows.
const CHILD = ["inputStage", "thenStage", "elseStage", "outerStage", "innerStage", "queryPlan"];
const CHILDREN = ["inputStages", "shards"];

const planOf = (node) => node.executionStages || node.winningPlan || node;
const isPlan = (node) => node !== null && typeof node === "object";

function childrenOf(node) {
    const single = CHILD.filter((name) => isPlan(node[name])).map((name) => node[name]);
    const many = CHILDREN.filter((name) => Array.isArray(node[name])).flatMap((name) => node[name]).map(planOf);
    return [...single, ...many];
}
function* walk(node) {
    if (!isPlan(node)) return;
    yield node;
    for (const child of childrenOf(node)) yield* walk(child);
}

// The parts of an explain that describe plans, for find and aggregate, on a node or through a router.
function rootsOf(explain) {
    const roots = [];
    if (explain.queryPlanner) roots.push(explain);
    if (Array.isArray(explain.stages)) roots.push(...explain.stages.filter((stage) => stage.$cursor).map((stage) => stage.$cursor));
    if (explain.shards && !Array.isArray(explain.shards)) Object.values(explain.shards).forEach((shard) => roots.push(...rootsOf(shard)));
    return roots;
}
const winning = (planner) => planner.winningPlan;
function treesOf(root) {
    const isExplain = root.queryPlanner || root.stages || (root.shards && !Array.isArray(root.shards));
    return isExplain ? rootsOf(root).map((part) => winning(part.queryPlanner)) : [root];
}

export function getPlanStages(root, stage) {
    return treesOf(root).flatMap((tree) => [...walk(tree)]).filter((node) => node.stage === stage);
}
export function getAllPlanStages(root) {
    return treesOf(root).flatMap((tree) => [...walk(tree)]).filter((node) => node.stage !== undefined);
}
export function getPlanStage(root, stage) {
    const found = getPlanStages(root, stage);
    assert.lte(found.length, 1, `${stage} more than once in ${tojson(root)}`);
    return found[0] ?? null;
}
export const planHasStage = (db, root, stage) => getPlanStages(root, stage).length > 0;
export const isCollscan = (db, root) => planHasStage(db, root, "COLLSCAN");
export const isIxscan = (db, root) => planHasStage(db, root, "IXSCAN");
export const isIdhack = (db, root) => planHasStage(db, root, "IDHACK");
export const isExpress = (db, root) => ["EXPRESS_IXSCAN", "EXPRESS_CLUSTERED_IXSCAN", "EXPRESS_UPDATE", "EXPRESS_DELETE"].some((stage) => planHasStage(db, root, stage));
export const isIdhackOrExpress = (db, root) => isIdhack(db, root) || isExpress(db, root);
export const isCountScan = (db, root) => planHasStage(db, root, "COUNT_SCAN");
export const isEofPlan = (db, root) => planHasStage(db, root, "EOF");
export const isIndexOnly = (db, root) => !planHasStage(db, root, "FETCH") && !isCollscan(db, root);
export const getQueryPlanner = (explain) => rootsOf(explain)[0].queryPlanner;
export const getQueryPlanners = (explain) => rootsOf(explain).map((part) => part.queryPlanner);
export const getWinningPlan = (planner) => planner.queryPlan || planner.winningPlan;
export const getWinningPlanFromExplain = (explain) => winning(getQueryPlanner(explain));
export const getRejectedPlans = (root) => getQueryPlanner(root).rejectedPlans;
export const getRejectedPlan = (plan) => plan.queryPlan || plan;
export const hasRejectedPlans = (root) => getQueryPlanners(root).some((planner) => (planner.rejectedPlans || []).length > 0);
export function getExecutionStages(explain) {
    const found = rootsOf(explain).filter((part) => part.executionStats).map((part) => part.executionStats.executionStages);
    return found.flatMap((stages) => (Array.isArray(stages.shards) ? stages.shards.map((shard) => shard.executionStages) : [stages]));
}
export function getExecutionStats(explain) {
    const parts = rootsOf(explain).map((part) => part.executionStats).filter((stats) => stats !== undefined);
    return parts.flatMap((stats) => (stats.executionStages && Array.isArray(stats.executionStages.shards) ? stats.executionStages.shards : [stats]));
}

// Stages of a pipeline ("$group") and, under them, of the plans that feed it.
function* pipelines(explain) {
    if (Array.isArray(explain.stages)) yield explain.stages;
    if (explain.shards && !Array.isArray(explain.shards)) for (const shard of Object.values(explain.shards)) yield* pipelines(shard);
    if (explain.splitPipeline && explain.splitPipeline.mergerPart) yield explain.splitPipeline.mergerPart;
}
export function getAggPlanStages(explain, stage) {
    const own = [...pipelines(explain)].flat().filter((one) => one[stage] !== undefined);
    return [...own, ...getPlanStages(explain, stage)];
}
export function getAggPlanStage(explain, stage) {
    const found = getAggPlanStages(explain, stage);
    assert.lte(found.length, 1, `${stage} more than once in ${tojson(explain)}`);
    return found[0] ?? null;
}
export const aggPlanHasStage = (explain, stage) => getAggPlanStages(explain, stage).length > 0;
export const isAggregationPlan = (explain) => [...pipelines(explain)].length > 0;
export const isQueryPlan = (explain) => explain.queryPlanner !== undefined;
export const getOptimizer = () => "classic";
export function assertExplainCount({ explainResults, expectedCount }) {
    const count = getExecutionStages(explainResults).reduce((sum, stage) => sum + Number(stage.nCounted ?? stage.nReturned), 0);
    assert.eq(count, expectedCount, tojson(explainResults));
}
export function assertStagesForExplainOfCommand({ coll, cmdObj, expectedStages = [], stagesNotExpected = [] }) {
    const plan = assert.commandWorked(coll.runCommand({ explain: cmdObj }));
    expectedStages.forEach((stage) => assert(planHasStage(coll.getDB(), plan, stage), `no ${stage} in ${tojson(plan)}`));
    stagesNotExpected.forEach((stage) => assert(!planHasStage(coll.getDB(), plan, stage), `${stage} in ${tojson(plan)}`));
    return plan;
}
