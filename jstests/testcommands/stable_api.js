/**
 * A client that asks for the stable API gets what is in it and is refused what is not: commands, fields, stages and kinds of indexes.
 * Fails when apiStrict no longer refuses one of no version 1, or refuses one that is in it.
 */
const coll = db.stable_api;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));
const strict = {apiVersion: "1", apiStrict: true};

assert.commandWorked(db.runCommand(Object.assign({testVersions1And2: 1}, strict)));
assert.commandFailedWithCode(db.runCommand(Object.assign({testVersion2: 1}, strict)), 323);
assert.commandWorked(db.runCommand({testVersion2: 1}));

function aggregate(pipeline, api) {
    return db.runCommand(Object.assign({aggregate: coll.getName(), pipeline: pipeline, cursor: {}}, api));
}
assert.eq([{_id: 1}], assert.commandWorked(aggregate([{$match: {_id: 1}}, {$sort: {_id: 1}}], strict)).cursor.firstBatch);
const refused = assert.commandFailedWithCode(aggregate([{$indexStats: {}}], strict), 323);
assert.eq("$indexStats is not allowed with 'apiStrict: true' in API Version 1", refused.errmsg);
assert.commandWorked(aggregate([{$indexStats: {}}], {apiVersion: "1"}));
assert.commandFailedWithCode(aggregate([], {apiVersion: "2"}), 322);

// Stages in the pipelines of others, and what they ask.
const unstable = [{$indexStats: {}}];
assert.commandFailedWithCode(aggregate([{$lookup: {from: coll.getName(), pipeline: unstable, as: "a"}}], strict), 323);
assert.commandFailedWithCode(aggregate([{$unionWith: {coll: coll.getName(), pipeline: unstable}}], strict), 323);
assert.commandFailedWithCode(aggregate([{$facet: {a: [{$count: "n"}], b: unstable}}], strict), 323);
assert.commandFailedWithCode(aggregate([{$collStats: {latencyStats: {}}}], strict), 323);
assert.commandWorked(aggregate([{$collStats: {count: {}}}], strict));
assert.commandWorked(aggregate([{$unionWith: {coll: coll.getName(), pipeline: [{$match: {_id: 1}}]}}], strict));

// Operators of expressions, wherever a command has them; a literal is none.
const script = {$function: {body: "function() { return 1; }", args: [], lang: "js"}};
const target = coll.getName();
for (const command of [
    {aggregate: target, pipeline: [{$project: {a: {$add: [1, script]}}}], cursor: {}},
    {aggregate: target, pipeline: [{$group: {_id: null, a: {$percentile: {input: "$_id", p: [0.5], method: "approximate"}}}}], cursor: {}},
    {aggregate: target, pipeline: [{$facet: {a: [{$match: {$expr: script}}]}}], cursor: {}},
    {find: target, filter: {$or: [{_id: 1}, {$expr: {$eq: [1, script]}}]}},
    {find: target, projection: {a: script}},
    {update: target, updates: [{q: {}, u: [{$set: {a: script}}]}]},
    {delete: target, deletes: [{q: {$expr: script}, limit: 1}]},
    {findAndModify: target, query: {}, update: [{$set: {a: script}}]},
]) {
    const reply = assert.commandFailedWithCode(db.runCommand({...command, ...strict}), 323, tojson(command));
    assert(/^\$(function|percentile) is not allowed with 'apiStrict: true' in API Version 1$/.test(reply.errmsg), tojson(reply));
}
assert.eq(1, assert.commandWorked(aggregate([{$project: {a: {$literal: {$function: 1}}}}], strict)).cursor.firstBatch.length);
assert.commandWorked(db.runCommand({find: target, filter: {a: {$eq: {$function: 1}}}, ...strict}));

// What is explained is judged like the command itself.
assert.commandWorked(db.runCommand({explain: {find: target, filter: {_id: 1}}, ...strict}));
assert.commandFailedWithCode(db.runCommand({explain: {aggregate: target, pipeline: [{$indexStats: {}}], cursor: {}}, ...strict}), 323);
assert.commandFailedWithCode(db.runCommand({explain: {find: target, showRecordId: true}, ...strict}), 323);
const inner = assert.commandFailedWithCode(db.runCommand({explain: {distinct: target, key: "a"}, ...strict}), 323);
assert(inner.errmsg.startsWith("Provided apiStrict:true, but the command distinct is not in API Version 1."), tojson(inner));

// Fields, of a command and of the documents in its list.
const name = coll.getName();
const supplied = {q: {_id: 1}, u: [{$set: {a: 1}}], upsert: true, upsertSupplied: true, c: {new: {_id: 1}}};
for (const [command, field] of [
    [{find: name, tailable: true}, "find.tailable"],
    [{find: name, min: {_id: 1}, hint: {_id: 1}}, "find.min"],
    [{find: name, showRecordId: true}, "find.showRecordId"],
    [{create: "stable_api_capped", capped: true, size: 4096}, "create.capped"],
    [{createIndexes: name, indexes: [{key: {a: 1}, name: "a"}, {key: {b: 1}, name: "b", sparse: true}]}, "createIndexes.indexes.sparse"],
    [{update: name, updates: [{q: {}, u: {$set: {a: 1}}}, supplied]}, "update.updates.upsertSupplied"],
]) {
    const reply = assert.commandFailedWithCode(db.runCommand({...command, ...strict}), 323, field);
    assert(reply.errmsg.includes(`'${field}'`), tojson([field, reply]));
}
assert.commandFailedWithCode(db.runCommand({createIndexes: name, indexes: [{key: {a: "text"}, name: "t"}], ...strict}), 323);
assert.eq([{_id: 1}], coll.find().toArray(), "a refused command did something");
for (const command of [
    {find: name, filter: {_id: 1}, sort: {_id: 1}, hint: {_id: 1}, allowDiskUse: true},
    {create: "stable_api_plain", collation: {locale: "en"}},
    {createIndexes: name, indexes: [{key: {a: 1}, name: "a_1"}]},
    {update: name, updates: [{q: {_id: 1}, u: {$set: {a: 1}}, upsert: true}]},
]) {
    assert.commandWorked(db.runCommand({...command, ...strict}), tojson(command));
}
db.stable_api_plain.drop();
