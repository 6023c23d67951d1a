/**
 * An aggregation answers with a cursor like a find.
 * Fails when batches have another size, the cursor loses documents, or a malformed aggregate command is taken.
 */
const coll = db.aggregate_cursor;
coll.drop();
assert.commandWorked(coll.insert([...Array(250).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function open(pipeline, cursor) {
    return assert.commandWorked(db.runCommand({aggregate: name, pipeline: pipeline, cursor: cursor})).cursor;
}
const byDefault = open([{$sort: {_id: 1}}], {});
assert.eq(101, byDefault.firstBatch.length);
assert.eq(db.getName() + "." + name, byDefault.ns);
const rest = assert.commandWorked(db.runCommand({getMore: byDefault.id, collection: name})).cursor;
assert.eq(149, rest.nextBatch.length);
assert.eq(0, rest.id);

const empty = open([{$sort: {_id: 1}}, {$project: {d: {$multiply: ["$_id", 2]}}}], {batchSize: 0});
assert.eq([], empty.firstBatch);
assert.neq(0, empty.id);
const three = assert.commandWorked(db.runCommand({getMore: empty.id, collection: name, batchSize: 3})).cursor;
assert.eq([0, 2, 4], three.nextBatch.map(doc => doc.d));
assert.commandWorked(db.runCommand({killCursors: name, cursors: [empty.id]}));
assert.commandFailedWithCode(db.runCommand({getMore: empty.id, collection: name}), ErrorCodes.CursorNotFound);

assert.eq(250, coll.aggregate([], {cursor: {batchSize: 7}}).itcount());
assert.eq(250, coll.aggregate([{$unwind: "$_id"}], {cursor: {batchSize: 60}}).itcount());
assert.eq([{n: 250}], coll.aggregate([{$group: {_id: null, n: {$sum: 1}}}, {$project: {_id: 0, n: 1}}], {cursor: {batchSize: 1}}).toArray());
assert.eq([], db.aggregate_cursor_none.aggregate([{$match: {}}]).toArray());

assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: []}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(db.runCommand({aggregate: name, cursor: {}}), 40414);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: {}, cursor: {}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [1], cursor: {}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{}], cursor: {}}), 40323);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$match: {}, $limit: 1}], cursor: {}}), 40323);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$unheardOf: 1}], cursor: {}}), 40324);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{match: {}}], cursor: {}}), 40324);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [], cursor: {batchSize: -1}}), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [], cursor: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [], cursor: {}, unheardOf: 1}), 40415);
assert.commandFailedWithCode(db.runCommand({aggregate: "", pipeline: [], cursor: {}}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$match: {}}], cursor: {}}), ErrorCodes.InvalidNamespace);
