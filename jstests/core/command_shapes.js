/**
 * A command whose fields are of the wrong type does nothing, and fails alike on a node and through a router: one that is taken more laxly by a
 * router drops a database for `{dropDatabase: 0}`. It fails if a row of a router checks other fields than the row of a node, or an
 * aggregation's fields are read differently by the two.
 */
const own = db.getSiblingDB("command_shapes");
assert.commandWorked(own.c.insert([{_id: 1, x: 1}, {_id: 2, x: 2}]));

function refused(code, command, on = own) {
    assert.commandFailedWithCode(on.runCommand(command), code, tojson(command));
}
const aggregate = (fields) => Object.assign({aggregate: "c", pipeline: [], cursor: {}}, fields);

for (const [code, fields] of [
    [14, {allowDiskUse: 1}], [14, {allowDiskUse: null}], [14, {explain: 1}], [14, {explain: null}],
    [14, {let: 1}], [14, {let: "x"}], [14, {collation: 1}], [14, {bypassDocumentValidation: "x"}],
    [14, {cursor: null}], [14, {cursor: {batchSize: "x"}}], [2, {cursor: {batchSize: -1}}], [40415, {cursor: {size: 1}}],
    [14, {pipeline: null}], [14, {pipeline: {}}], [40415, {unheardOf: 1}], [9, {hint: 1}],
    [9, {let: {Upper: 1}}], [4738901, {let: {NOW: 1}}], [4890500, {let: {a: "$x"}}],
    [9, {explain: true, writeConcern: {w: 1}}],
]) {
    refused(code, aggregate(fields));
}
refused(40414, {aggregate: "c", cursor: {}});
refused(9, {aggregate: "c", pipeline: []});
refused(73, aggregate({aggregate: true}));
refused(2, aggregate({aggregate: 2}));
refused(72, {aggregate: 1, pipeline: [{$currentOp: {}}], cursor: {}, readConcern: {level: "majority"}}, db.getSiblingDB("admin"));

// Batch sizes are numbers of any type, and a variable sees those before it.
for (const batchSize of [NumberDecimal("1"), 1.9, NumberLong(1), null]) {
    assert.commandWorked(own.runCommand(aggregate({cursor: {batchSize: batchSize}})), tojson(batchSize));
}
const summed = own.runCommand(aggregate({
    pipeline: [{$match: {_id: 1}}, {$project: {_id: 0, y: "$$b", gone: "$$c"}}],
    let: {a: 1, b: {$add: ["$$a", 1]}, c: "$$REMOVE"},
}));
assert.eq([{y: 2}], assert.commandWorked(summed).cursor.firstBatch);
const found = own.runCommand({find: "c", filter: {$expr: {$eq: ["$x", "$$b"]}}, let: {a: 1, b: {$add: ["$$a", 1]}}});
assert.eq([{_id: 2, x: 2}], assert.commandWorked(found).cursor.firstBatch);

for (const [code, argument] of [[5255100, 0], [5255100, 2], [5255100, NaN], [14, "1"], [14, true], [40414, null]]) {
    refused(code, {dropDatabase: argument});
}
refused(40415, {dropDatabase: 1, unheardOf: 1});
assert.eq(2, own.c.countDocuments({}), "nothing was dropped");

for (const cursor of [{batchSize: -1}, {batchSize: -1.5}]) {
    refused(2, {listCollections: 1, cursor: cursor});
    refused(2, {listIndexes: "c", cursor: cursor});
}
refused(14, {listCollections: 1, cursor: {batchSize: "x"}});
refused(40415, {listCollections: 1, cursor: {size: 1}});

const admin = db.getSiblingDB("admin");
refused(40414, {renameCollection: null, to: "command_shapes.d"}, admin);
refused(14, {renameCollection: "command_shapes.c", to: 1}, admin);
refused(14, {renameCollection: "command_shapes.c", to: "command_shapes.d", dropTarget: null}, admin);
refused(20, {renameCollection: "command_shapes.$c", to: "command_shapes.d"}, admin);
refused(20, {renameCollection: "command_shapes.system.js", to: "command_shapes.d"}, admin);
refused(20, {renameCollection: "command_shapes.c", to: "command_shapes.c"}, admin);

// The filter of a list finds no text and runs no scripts.
for (const filter of [{$where: "true"}, {$text: {$search: "c"}}]) {
    refused(2, {listDatabases: 1, filter: filter}, admin);
    refused(2, {listCollections: 1, filter: filter});
}

// Nulls among the stages of a view count for nothing.
assert.commandWorked(own.runCommand({create: "v", viewOn: "c", pipeline: [null, {$match: {x: 1}}, null]}));
assert.eq([{_id: 1, x: 1}], own.v.find().toArray());
assert.commandWorked(own.runCommand({collMod: "v", viewOn: "c", pipeline: [null, {$match: {x: 2}}]}));
assert.eq([{_id: 2, x: 2}], own.v.find().toArray());
refused(14, {create: "w", viewOn: "c", pipeline: [1]});

assert.commandWorked(own.dropDatabase());
