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
assert.eq("stage $indexStats is not allowed with 'apiStrict: true' in API Version 1", refused.errmsg);
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
