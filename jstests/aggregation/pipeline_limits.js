/**
 * Pipelines and expressions are bounded in length and depth, so that no request can exhaust the server's stack.
 * Fails when an endless pipeline or a bottomless expression is taken, or one within the bounds is refused.
 */
const coll = db.pipeline_limits;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, v: 1}));

function stages(n) {
    return [...Array(n).keys()].map(i => ({$set: {["f" + (i % 5)]: i}}));
}
const deep = coll.aggregate(stages(200)).toArray()[0];
assert.eq(199, deep.f4);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: stages(1001), cursor: {}}), [7749501, 5054701, ErrorCodes.FailedToParse]);

function nested(depth) {
    let expression = "$v";
    for (let i = 0; i < depth; i++) {
        expression = {$abs: expression};
    }
    return expression;
}
assert.eq(1, coll.aggregate([{$project: {v: nested(80)}}]).toArray()[0].v);
const error = assert.throws(() => coll.aggregate([{$project: {v: nested(400)}}]).toArray());
assert.contains(error.code, [ErrorCodes.Overflow, ErrorCodes.InvalidBSON, ErrorCodes.BadValue, 17279], () => tojson(error));

// Joins nest up to a bound.
function joins(depth) {
    let pipeline = [];
    for (let i = 0; i < depth; i++) {
        pipeline = [{$lookup: {from: coll.getName(), pipeline: pipeline, as: "j"}}];
    }
    return pipeline;
}
assert.eq(1, coll.aggregate(joins(5)).toArray()[0].j[0].j[0].j[0].j[0].j[0]._id);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: joins(30), cursor: {}}), ErrorCodes.MaxSubPipelineDepthExceeded);
