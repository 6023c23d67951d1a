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

// Nothing is known of a view but how long operations took, and its name counts only when the options are right.
const view = db.collection_stats_stage_view;
view.drop();
assert.commandWorked(db.createView(view.getName(), coll.getName(), []));
for (const spec of [{latencyStats: {}}, {}, {count: null, storageStats: null, queryExecStats: null}]) {
    const found = view.aggregate([{$collStats: spec}]).toArray();
    assert(found[0].localTime instanceof Date, tojson(found));
    assert.eq(spec.hasOwnProperty("latencyStats"), found[0].hasOwnProperty("latencyStats"), tojson(found));
}
for (const [spec, code] of [[{count: {}}, ErrorCodes.CommandNotSupportedOnView], [{count: 1}, ErrorCodes.TypeMismatch], [{count: {a: 1}}, 31170]]) {
    assert.commandFailedWithCode(db.runCommand({aggregate: view.getName(), pipeline: [{$collStats: spec}], cursor: {}}), code, tojson(spec));
}
assert(!stats({queryExecStats: null})[0].hasOwnProperty("queryExecStats"));
refused(ErrorCodes.TypeMismatch, {$collStats: {latencyStats: {histograms: null}}});

// What is asked of a time series is told of its buckets.
const series = db.collection_stats_stage_series;
series.drop();
assert.commandWorked(db.createCollection(series.getName(), {timeseries: {timeField: "t"}}));
assert.commandWorked(series.insert({t: new Date(0), x: 1}));
assert.eq(1, sum(series.aggregate([{$collStats: {storageStats: {}}}]).toArray(), doc => doc.storageStats.timeseries.bucketCount));

// Of a collection that does not exist there is no count, and no other number but how long operations took.
const missing = db.getSiblingDB("collection_stats_stage_missing");
for (const option of ["count", "storageStats", "queryExecStats"]) {
    assert.commandFailedWithCode(missing.runCommand({aggregate: "c", pipeline: [{$collStats: {[option]: {}}}], cursor: {}}), ErrorCodes.NamespaceNotFound, option);
}

// How long operations took is told of this collection alone; a histogram has each of them once.
for (const doc of db.collection_stats_stage_unused.aggregate([{$collStats: {latencyStats: {}}}]).toArray()) {
    assert.eq(0, Number(doc.latencyStats.writes.ops), tojson(doc));
    assert(!doc.latencyStats.reads.hasOwnProperty("histogram"), tojson(doc));
}
coll.find().itcount();
const latencies = stats({latencyStats: {histograms: true}}).map(doc => doc.latencyStats);
assert.lt(0, sum(latencies, latency => latency.reads.ops));
for (const latency of latencies) {
    for (const kind of ["reads", "writes", "commands", "transactions"]) {
        assert.eq(Number(latency[kind].ops), sum(latency[kind].histogram, range => range.count), tojson(latency));
    }
}
