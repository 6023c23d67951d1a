/**
 * What a plan consists of, whichever shape its explain output has: of a find or an aggregation, of one node or of many shards.
 */

/** Calls `visit` with every winning plan within an explain output. */
function eachWinningPlan(node, visit) {
    if (node === null || typeof node !== "object") {
        return;
    }
    for (const [name, value] of Object.entries(node)) {
        if (name === "winningPlan" && value.stage !== undefined && value.shards === undefined) {
            visit(value);
        } else if (name !== "rejectedPlans") {
            eachWinningPlan(value, visit);
        }
    }
}

function eachStage(plan, visit) {
    visit(plan);
    const inputs = [plan.inputStage, plan.outerStage, plan.innerStage].concat(plan.inputStages || []);
    inputs.filter(input => input !== undefined).forEach(input => eachStage(input, visit));
}

/** All stages of all winning plans, as the documents that describe them. */
export function planStages(explain) {
    const stages = [];
    eachWinningPlan(explain, plan => eachStage(plan, stage => stages.push(stage)));
    return stages;
}

/** The names of these stages, each once. */
export function planStageNames(explain) {
    return [...new Set(planStages(explain).map(stage => stage.stage))];
}

/** Whether a plan has such a stage. */
export function planHasStage(explain, name) {
    return planStageNames(explain).includes(name);
}

/** The names of the indexes that a plan reads, each once. */
export function planIndexes(explain) {
    return [...new Set(planStages(explain).map(stage => stage.indexName).filter(name => name !== undefined))];
}

/** What the one node says of a pipeline that it runs whole, whether it was asked by a router or not. */
export function explainOfOneNode(explain) {
    return explain.shards === undefined ? explain : Object.values(explain.shards)[0];
}
