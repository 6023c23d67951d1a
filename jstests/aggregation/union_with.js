/**
 * $unionWith appends what another collection, or a pipeline over one, gives.
 * Fails when documents are lost or made unique, the pipeline is not applied, or later stages see only one side.
 */
const one = db.union_with_one;
const two = db.union_with_two;
one.drop();
two.drop();
assert.commandWorked(one.insert([{_id: 1, v: 1}, {_id: 2, v: 2}]));
assert.commandWorked(two.insert([{_id: 1, v: 1}, {_id: 3, v: 30}]));

function values(...pipeline) {
    return one.aggregate(pipeline).toArray().map(doc => doc.v);
}
assert.eq([1, 1, 2, 30], values({$unionWith: two.getName()}, {$sort: {v: 1}}));
assert.eq([1, 2, 30], values({$unionWith: {coll: two.getName(), pipeline: [{$match: {v: {$gt: 5}}}]}}, {$sort: {v: 1}}));
assert.eq([1, 1, 1, 2, 2, 30], values({$unionWith: two.getName()}, {$unionWith: one.getName()}, {$sort: {v: 1}}));
assert.eq([1, 2], values({$unionWith: "union_with_none"}, {$sort: {v: 1}}));
assert.eq([{_id: null, n: 4, sum: 34}], one.aggregate([{$unionWith: two.getName()}, {$group: {_id: null, n: {$sum: 1}, sum: {$sum: "$v"}}}]).toArray());
assert.eq([1, 2, 7], values({$unionWith: {pipeline: [{$documents: [{v: 7}]}]}}, {$sort: {v: 1}}));
assert.eq([1, 2, 33], values({$unionWith: {coll: two.getName(), pipeline: [{$group: {_id: null, v: {$sum: "$v"}}}, {$set: {v: {$add: ["$v", 2]}}}]}}, {$sort: {v: 1}}));
// A union within a union.
assert.eq([1, 1, 1, 2, 2, 30],
          values({$unionWith: {coll: two.getName(), pipeline: [{$unionWith: {coll: one.getName()}}]}}, {$sort: {v: 1}}));
// What comes before is not applied to the other side.
assert.eq([2, 1, 30], values({$match: {v: 2}}, {$unionWith: {coll: two.getName(), pipeline: [{$sort: {v: 1}}]}}));

// The time between two batches is none that the union takes, though it was opened before.
assert.commandWorked(two.insert([...Array(5000).keys()].map((i) => ({_id: i + 100, v: i}))));
const opened = assert.commandWorked(db.runCommand({
    aggregate: one.getName(), pipeline: [{$match: {v: 0}}, {$unionWith: two.getName()}], cursor: {batchSize: 1}, maxTimeMS: 3000})).cursor;
assert.eq(1, opened.firstBatch.length);
sleep(3300);
const later = assert.commandWorked(db.runCommand({getMore: opened.id, collection: one.getName()})).cursor;
assert.eq(5001, later.nextBatch.length);
assert.commandWorked(two.deleteMany({_id: {$gte: 100}}));

function refused(codes, union) {
    assert.commandFailedWithCode(db.runCommand({aggregate: one.getName(), pipeline: [{$unionWith: union}], cursor: {}}), codes, () => tojson(union));
}
refused(ErrorCodes.FailedToParse, 1);
refused([ErrorCodes.FailedToParse, ErrorCodes.InvalidNamespace, 40414], {});
refused(ErrorCodes.TypeMismatch, {coll: 1});
refused(40415, {coll: "x", unheardOf: 1});
refused(ErrorCodes.TypeMismatch, {coll: "x", pipeline: 1});
refused(31441, {coll: "x", pipeline: [{$out: "y"}]});
refused(40324, {coll: "x", pipeline: [{$unheardOf: 1}]});
