/**
 * What stages write to files is told where the real server tells it: by stage in explain, by command in the profiler and
 * the log, and for the server in serverStatus.
 */
(function() {
"use strict";

const conn = MongoRunner.runMongod({setParameter: {internalDocumentSourceGroupMaxMemoryBytes: 100 * 1024}});
const db = conn.getDB("spill_reports");
const limits = {
    internalDocumentSourceGroupMaxMemoryBytes: 100 * 1024,
    internalQueryMaxBlockingSortMemoryUsageBytes: 100 * 1024,
    internalDocumentSourceBucketAutoMaxMemoryBytes: 100 * 1024,
    internalDocumentSourceGraphLookupMaxMemoryBytes: 100 * 1024,
    internalDocumentSourceSetWindowFieldsMaxMemoryBytes: 100 * 1024,
    internalQuerySlotBasedExecutionHashLookupApproxMemoryUseInBytesBeforeSpill: 100 * 1024,
};
for (const [name, value] of Object.entries(limits)) {
    assert.commandWorked(db.adminCommand({setParameter: 1, [name]: value}));
}
const N = 2000;
assert.commandWorked(db.c.insert(Array.from({length: N}, (_, i) => ({_id: i, k: i * 7 % N, s: "x".repeat(300)}))));

const spills = () => db.serverStatus().metrics.query;
const before = spills();
const untouched = [before.group, before.bucketAuto, before.graphLookup, before.hashLookup, before.setWindowFields]
    .map(of => of.spills);
assert.eq([0, 0, 0, 0, 0, 0], untouched.concat(before.sort.spillToDisk).map(Number), before);

// Explain runs the pipeline, and tells of each stage what came out of it and what it wrote.
const group = {$group: {_id: "$k", all: {$push: "$s"}}};
const explained = db.c.explain("executionStats").aggregate([group, {$match: {_id: {$lt: 10}}}, {$count: "n"}]);
const [shown, match] = [explained.stages[1], explained.stages[2]];
assert(shown.$group && match.$match, explained);
assert.eq([true, N, 10], [shown.usedDisk, Number(shown.nReturned), Number(match.nReturned)], explained);
assert.gt(shown.spills, 1);
assert.gte(shown.spilledRecords, N / 2);
assert.gt(shown.spilledBytes, 100 * 1024);
assert.gt(shown.spilledDataStorageSize, 100 * 1024);
assert.gt(shown.totalOutputDataSizeBytes, N * 300);
assert(!match.hasOwnProperty("usedDisk"), match);
const small = db.c.explain("executionStats").aggregate([{$match: {_id: {$lt: 10}}}, group]).stages[1];
assert.eq([false, 0, 10], [small.usedDisk, small.spills, Number(small.nReturned)], small);
const planned = db.c.explain("queryPlanner").aggregate([group]).stages[1];
assert(!planned.hasOwnProperty("nReturned") && !planned.hasOwnProperty("usedDisk"), planned);

const later = [{$project: {k: 1, s: 1}}, {$set: {k2: "$k"}}, {$sort: {k2: 1}}, {$skip: 1}];
const sorted = db.c.explain("executionStats").aggregate(later).stages.find(s => s.$sort);
assert.eq([true, N], [sorted.usedDisk, Number(sorted.nReturned)], sorted);
assert.gt(sorted.totalDataSizeSortedBytesEstimate, 0);
let stage = db.c.find().sort({s: 1, k: 1}).explain("executionStats").executionStats.executionStages;
while (stage.stage !== "SORT") {
    stage = stage.inputStage;
}
assert.eq(true, stage.usedDisk, stage);
assert.gt(stage.spills, 0);

const search = [{$limit: 1}, {$graphLookup:
    {from: "c", startWith: {$range: [0, N]}, connectFromField: "k", connectToField: "_id", as: "met"}}];
const windows = [{$setWindowFields: {sortBy: {_id: 1}, output: {r: {$sum: "$k", window: {documents: [-1, 0]}}}}}];
for (const [pipeline, name] of [[search, "$graphLookup"], [windows, "$_internalSetWindowFields"]]) {
    const spilled = db.c.explain("executionStats").aggregate(pipeline).stages.find(s => s[name]);
    assert.eq(true, spilled.usedDisk, spilled);
    assert.gt(spilled.spills, 1, spilled);
    assert.gte(spilled.spilledRecords, N / 2, spilled);
    assert.gt(spilled.spilledDataStorageSize, 100 * 1024, spilled);
    assert.commandFailedWithCode(
        db.runCommand({aggregate: "c", pipeline, cursor: {}, allowDiskUse: false}),
        ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed);
}

// A join without an index reads the foreign collection once to ask for the first documents, and once more for all others.
const join = [{$lookup: {from: "c", localField: "_id", foreignField: "k", as: "met"}}];
const lookedAt = () => Number(db.serverStatus().metrics.queryExecutor.scannedObjects);
const untilNow = lookedAt();
const joined = db.c.explain("executionStats").aggregate(join).stages.find(s => s.$lookup);
assert.lte(lookedAt() - untilNow, 3 * N + 10);
assert.eq([true, N], [joined.usedDisk, Number(joined.nReturned)], joined);
assert.gt(joined.spills, 1, joined);
assert.eq(N, joined.spilledRecords, joined);
db.c.aggregate(join).forEach(d => assert.eq([d._id], d.met.map(met => met.k)));
assert.commandWorked(db.c.createIndex({k: 1}));
const indexed = db.c.explain("executionStats").aggregate(join).stages.find(s => s.$lookup);
assert(!indexed.usedDisk, indexed);
assert.commandWorked(db.c.dropIndex({k: 1}));
// Where the disk may not be used the join goes on asking.
db.c.aggregate(join, {allowDiskUse: false}).forEach(d => assert.eq([d._id], d.met.map(met => met.k)));

// What was explained has spilled, too.
const explainedOnly = spills();
assert.gt(explainedOnly.group.spills, 0);

// The profiler and the log tell it of the command.
assert.commandWorked(db.setProfilingLevel(2));
const run = (pipeline, comment) => assert.eq(N, db.c.aggregate(pipeline, {comment}).itcount());
run([{$group: {_id: "$k", all: {$push: "$s"}}}], "grouped");
run([{$sort: {s: 1, k: 1}}], "sorted");
assert.eq(3, db.c.aggregate([{$bucketAuto: {groupBy: "$k", buckets: 3}}], {comment: "bucketed"}).itcount());
assert.eq(N, db.c.find().sort({s: 1, k: 1}).comment("found").itcount());
assert.eq(N, db.c.aggregate(search, {comment: "searched"}).next().met.length);
run(windows, "windowed");
assert.eq(N, db.c.aggregate(join, {comment: "joined", cursor: {batchSize: N}}).itcount());
assert.eq(10, db.c.aggregate([{$limit: 10}], {comment: "small"}).itcount());
assert.commandWorked(db.setProfilingLevel(0));
const profiled = comment => db.system.profile.findOne({"command.comment": comment, op: {$ne: "getmore"}});
const kinds = [["grouped", "group"], ["sorted", "sort"], ["bucketed", "bucketAuto"], ["found", "sort"],
    ["searched", "graphLookup"], ["windowed", "setWindowFields"], ["joined", "hashLookup"]];
for (const [comment, kind] of kinds) {
    const entry = profiled(comment);
    assert.eq(true, entry.usedDisk, entry);
    assert.gt(entry[kind + "Spills"], 0, entry);
    assert.gt(entry[kind + "SpilledBytes"], 0, entry);
    assert.gt(entry[kind + "SpilledRecords"], 0, entry);
    assert.gt(entry[kind + "SpilledDataStorageSize"], 0, entry);
}
const entry = profiled("small");
assert(entry && !entry.hasOwnProperty("usedDisk") && !entry.hasOwnProperty("groupSpills"), entry);

const after = spills();
assert.gt(after.group.spills, explainedOnly.group.spills);
assert.gt(after.group.spilledRecords, before.group.spilledRecords);
assert.gt(after.group.spilledDataStorageSize, 0);
assert.gt(after.bucketAuto.spills, 0);
assert.gt(after.graphLookup.spills, explainedOnly.graphLookup.spills);
assert.gt(after.hashLookup.spills, explainedOnly.hashLookup.spills);
assert.gt(after.setWindowFields.spills, explainedOnly.setWindowFields.spills);
assert.eq([], listFiles(conn.dbpath + "/_tmp").map(file => file.name), "a file is left");
assert.gt(after.sort.spillToDisk, explainedOnly.sort.spillToDisk);
assert.gt(after.sort.spillToDiskBytes, 0);

assert.commandWorked(db.setProfilingLevel(0, {slowms: 0}));
run([{$group: {_id: "$k", all: {$push: "$s"}}}], "logged");
const line = assert.commandWorked(db.adminCommand({getLog: "global"})).log
    .map(l => JSON.parse(l)).find(l => l.id === 51803 && l.attr.command && l.attr.command.comment === "logged");
assert.eq(true, line.attr.usedDisk, line);
assert.gt(line.attr.groupSpills, 0, line);
MongoRunner.stopMongod(conn);
}());
