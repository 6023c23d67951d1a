/**
 * $collStats gives the statistics of a collection within a pipeline, one document a shard.
 * Fails when a section is missing or shown without being asked for, or the counts are wrong.
 */
const coll = db.collection_stats_stage;
coll.drop();
assert.commandWorked(coll.insert([...Array(30).keys()].map(i => ({_id: i, padding: "x".repeat(100)}))));

function stats(spec) {
    return coll.aggregate([{$collStats: spec}]).toArray();
}
function sum(documents, field) {
    return documents.reduce((total, doc) => total + Number(field(doc)), 0);
}
for (const doc of stats({})) {
    assert.eq(coll.getFullName(), doc.ns);
    assert(doc.localTime instanceof Date);
    assert(!doc.hasOwnProperty("count") && !doc.hasOwnProperty("storageStats"), tojson(doc));
}
assert.eq(30, sum(stats({count: {}}), doc => doc.count));
const storage = stats({storageStats: {}});
assert.eq(30, sum(storage, doc => doc.storageStats.count));
assert.eq(30 * Object.bsonsize({_id: 1, padding: "x".repeat(100)}), sum(storage, doc => doc.storageStats.size));
assert.eq(storage.length, coll.aggregate([{$collStats: {storageStats: {}}}, {$match: {"storageStats.capped": false}}]).itcount());

function refused(codes, ...pipeline) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(pipeline));
}
refused([5447000, 40164, ErrorCodes.TypeMismatch], {$collStats: 1});
refused([40167, 40415, 40171], {$collStats: {unheardOf: 1}});
refused(40602, {$match: {}}, {$collStats: {}});

// A node knows of a view nothing but how long operations took, and its name counts only when the options are right. A router asks for what is
// below the view.
const routed = db.hello().msg === "isdbgrid";
const view = db.collection_stats_stage_view;
view.drop();
assert.commandWorked(db.createView(view.getName(), coll.getName(), []));
for (const spec of [{latencyStats: {}}, {}, {count: null, storageStats: null, queryExecStats: null}]) {
    const found = view.aggregate([{$collStats: spec}]).toArray();
    assert(found[0].localTime instanceof Date, tojson(found));
    assert.eq(spec.hasOwnProperty("latencyStats"), found[0].hasOwnProperty("latencyStats"), tojson(found));
}
for (const [spec, code] of routed ? [] : [[{count: {}}, ErrorCodes.CommandNotSupportedOnView], [{count: 1}, ErrorCodes.TypeMismatch], [{count: {a: 1}}, 31170]]) {
    assert.commandFailedWithCode(db.runCommand({aggregate: view.getName(), pipeline: [{$collStats: spec}], cursor: {}}), code, tojson(spec));
}
assert(!stats({queryExecStats: null})[0].hasOwnProperty("queryExecStats"));
refused(ErrorCodes.TypeMismatch, {$collStats: {latencyStats: {histograms: null}}});
