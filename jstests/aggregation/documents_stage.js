/**
 * $documents makes documents out of the request, for aggregations without a collection.
 * Fails when a document or its order is lost, it stands anywhere but first, or something else than documents is taken.
 */
function run(pipeline) {
    return assert.commandWorked(db.runCommand({aggregate: 1, pipeline: pipeline, cursor: {}})).cursor.firstBatch;
}
assert.eq([{x: 1}, {x: 2}], run([{$documents: [{x: 1}, {x: 2}]}]));
assert.eq([], run([{$documents: []}]));
assert.eq([{i: 1}, {i: 2}, {i: 3}], run([{$documents: {$map: {input: {$range: [1, 4]}, as: "n", in: {i: "$$n"}}}}]));
assert.eq([{x: 2}], run([{$documents: [{x: 1}, {x: 2}]}, {$match: {x: {$gt: 1}}}]));
assert.eq([{_id: null, sum: 6}], run([{$documents: [{x: 1}, {x: 2}, {x: 3}]}, {$group: {_id: null, sum: {$sum: "$x"}}}]));
assert.eq([{x: 3}], run([{$documents: [{x: {$add: [1, 2]}}]}]));
assert.eq([{x: 5}], assert.commandWorked(db.runCommand({aggregate: 1, pipeline: [{$documents: [{x: "$$v"}]}], cursor: {}, let: {v: 5}})).cursor.firstBatch);

function refused(codes, command) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({}, command, {cursor: {}})), codes, () => tojson(command));
}
refused([5858203, 40228], {aggregate: 1, pipeline: [{$documents: [1]}]});
refused([5858202, 5858203], {aggregate: 1, pipeline: [{$documents: {x: 1}}]});
refused(40602, {aggregate: 1, pipeline: [{$documents: [{x: 1}]}, {$documents: [{x: 2}]}]});
assert.commandWorked(db.documents_stage.insert({}));
refused(ErrorCodes.InvalidNamespace, {aggregate: "documents_stage", pipeline: [{$documents: [{x: 1}]}]});
