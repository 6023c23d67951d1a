/**
 * A client that asks for the stable API gets what is in it and is refused what is not, commands and stages alike.
 * Fails when apiStrict no longer refuses a command or a stage of no version 1, or refuses one that is in it.
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
