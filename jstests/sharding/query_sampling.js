/**
 * Queries through routers are sampled while a collection is configured for it, kept on its shards until they expire, and tell analyzeShardKey
 * what a shard key would do for them.
 * It fails if a query is not sampled or twice, if one of another collection is, if a drop leaves the configuration, or if a query is counted for
 * ranges that it does not reach.
 *
 * @tags: [requires_own_servers]
 */
const parameters = {queryAnalysisSamplerConfigurationRefreshSecs: 1, queryAnalysisWriterIntervalSecs: 1};
const st = new ShardingTest({
    shards: 2, mongos: 2, rs: {nodes: 1, setParameter: parameters},
    other: {mongosOptions: {setParameter: Object.assign({analyzeShardKeyNumRanges: 10}, parameters)}, configOptions: {setParameter: parameters}},
});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const db = st.s.getDB("d");
const coll = db.c;
const configure = (more, ns = "d.c") => admin.runCommand(Object.assign({configureQueryAnalyzer: ns}, more));

assert.commandFailedWithCode(configure({mode: "full", samplesPerSecond: 1}), ErrorCodes.NamespaceNotFound);
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: "d.c", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "d.c", middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: 0}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(coll.insert([...Array(100).keys()].map((i) => ({_id: i, x: i - 50, a: i, n: 0}))));
assert.commandWorked(db.plain.insert({_id: 1}));
assert.commandWorked(db.createView("v", "c", []));
assert.commandFailedWithCode(configure({mode: "full", samplesPerSecond: 1}, "d.v"), ErrorCodes.CommandNotSupportedOnView);
assert.commandFailedWithCode(st.rs0.getPrimary().adminCommand({configureQueryAnalyzer: "d.c", mode: "off"}), ErrorCodes.IllegalOperation);

// Both kinds of collection, sharded or not.
const on = assert.commandWorked(configure({mode: "full", samplesPerSecond: 50}));
assert.eq({mode: "full", samplesPerSecond: 50}, on.newConfiguration);
assert(!("oldConfiguration" in on));
assert.commandWorked(configure({mode: "full", samplesPerSecond: 20}, "d.plain"));
const known = st.config.queryAnalyzers.find().sort({_id: 1}).toArray();
assert.eq([["d.c", "full", 50], ["d.plain", "full", 20]], known.map((d) => [d._id, d.mode, d.samplesPerSecond]));
assert.eq(st.config.collections.findOne({_id: "d.c"}).uuid, known[0].collUuid);
assert(known[0].startTime instanceof Date && !("stopTime" in known[0]));

// The routers share the rate: whichever asks first has all of it, and afterwards it goes by their queries.
const rows = (conn) => conn.getDB("admin").aggregate([{$currentOp: {allUsers: true, localOps: true}}, {$match: {desc: "query analyzer"}}]).toArray();
const shards = [st.rs0, st.rs1].map((rs) => rs.getPrimary());
for (const conn of [st.s, st.s1, ...shards]) {
    assert.soon(() => rows(conn).length === 2, () => tojson(rows(conn)));
}

// The other router has no queries and no share; a second's quiet leaves enough for all of these.
const listed = (ns) => st.s1.getDB("admin").aggregate([{$listSampledQueries: ns ? {namespace: ns} : {}}, {$sort: {expireAt: 1}}]).toArray();
assert.soon(() => {
    coll.find({a: -1}).itcount();
    return rows(st.s)[0].samplesPerSecond > 40;
});
sleep(1500);
const before = rows(st.s)[0];
assert.eq([true, true], [before.startTime instanceof Date, !("sampledReadsBytes" in before)], tojson(before));
coll.find({x: 7}).itcount();
coll.find({x: {$gte: 30}}).collation({locale: "simple"}).itcount();
coll.aggregate([{$match: {a: {$gt: 90}}}, {$count: "n"}]).itcount();
assert.eq(1, coll.count({a: 1}));
assert.eq([1], coll.distinct("a", {a: 1}));
assert.commandWorked(coll.update({x: -3}, {$inc: {n: 1}}));
assert.commandWorked(coll.update({}, {$inc: {n: 1}}, {multi: true}));
assert.commandWorked(coll.update({a: 20}, {$set: {a: 1000}}));
assert.commandWorked(coll.remove({x: 44}));
assert.eq(1000, coll.findAndModify({query: {x: -30}, update: {$inc: {n: 1}}}).a);
db.other.find({x: 1}).itcount();
const [reads, writes] = [5, 5];
assert.soon(() => {
    const now = rows(st.s)[0];
    return now.sampledReadsCount - before.sampledReadsCount == reads && now.sampledWritesCount - before.sampledWritesCount == writes;
}, () => tojson([before, rows(st.s)]));

// Each is kept once, with what it asked for.
const isMine = (d) => !(d.cmdName === "find" && friendlyEqual(d.cmd.filter, {a: -1}));
assert.soon(() => listed("d.c").filter(isMine).length === reads + writes, () => tojson(listed("d.c").filter(isMine)));
const samples = listed("d.c").filter(isMine);
const named = (name) => samples.filter((d) => d.cmdName === name);
const finds = [{filter: {x: 7}, collation: {}}, {filter: {x: {$gte: 30}}, collation: {locale: "simple"}}];
assert.eq(finds.map(tojsononeline).sort(), named("find").map((d) => tojsononeline(d.cmd)).sort());
assert.eq([{a: {$gt: 90}}, {a: 1}, {a: 1}], ["aggregate", "count", "distinct"].map((name) => named(name)[0].cmd.filter));
assert.eq(3, named("update").length);
assert.eq([{q: {x: 44}, limit: 0}], named("delete")[0].cmd.deletes.map((s) => ({q: s.q, limit: Number(s.limit)})));
assert.eq({x: -30}, named("findAndModify")[0].cmd.query);
const expiresInDays = (samples[0].expireAt - new Date()) / 86400000;
assert(expiresInDays > 6.9 && expiresInDays < 7.1, `${expiresInDays}`);
assert.eq([], listed("d.other"));
assert.eq(listed().length, listed("d.c").length + listed("d.plain").length);
for (const shard of shards) {
    const ttl = shard.getDB("config").sampledQueries.getIndexes().filter((index) => "expireAfterSeconds" in index);
    assert.eq([{expireAt: 1}], ttl.map((index) => index.key));
    const status = shard.getDB("admin").serverStatus().queryAnalyzers;
    assert.eq([false, 2], ["activeCollections" in status, Number(status.totalCollections)]);
}
const kept = shards.map((shard) => rows(shard)[0]);
assert.eq(listed("d.c").length, Array.sum(kept.map((row) => Number(row.sampledReadsCount) + Number(row.sampledWritesCount))), tojson(kept));
assert.gt(Array.sum(kept.map((row) => Number(row.sampledWritesBytes))), 0);
const status = admin.serverStatus().queryAnalyzers;
assert.eq([2, 2, false], [Number(status.activeCollections), Number(status.totalCollections), "totalSampledReadsBytes" in status]);

// What an update has changed is kept on the shard that executed it.
const diffs = [].concat(...shards.map((shard) => shard.getDB("config").sampledQueriesDiff.find().toArray()));
const diffOf = (query) => diffs.filter((d) => friendlyEqual(d._id, query._id)).map((d) => d.diff);
assert.eq([{a: "u"}], diffOf(named("update").find((d) => friendlyEqual(d.cmd.updates[0].q, {a: 20}))));
assert.eq([{n: "u"}, {n: "u"}], diffOf(named("update").find((d) => d.cmd.updates[0].multi)));

// By the filler queries, whose keys are of no range.
const filler = listed("d.c").length - samples.length;
const analyze = (key) => assert.commandWorked(admin.runCommand({analyzeShardKey: "d.c", key, keyCharacteristics: false}));
const byX = analyze({x: 1});
const part = (n, all) => Math.round(n / all * 100 * 1e6) / 1e6;
const near = (expected, found) => assert.lt(Math.abs(expected - found), 1e-5, tojson([expected, found, byX]));
const sizes = byX.readDistribution.sampleSize;
assert.eq([reads + filler, 2 + filler, 1, 1, 1], [sizes.total, sizes.find, sizes.aggregate, sizes.count, sizes.distinct].map(Number));
near(part(1, reads + filler), byX.readDistribution.percentageOfSingleShardReads);
near(part(1, reads + filler), byX.readDistribution.percentageOfMultiShardReads);
near(part(3 + filler, reads + filler), byX.readDistribution.percentageOfScatterGatherReads);
// Ten ranges of about ten documents each: 7 is in the sixth, and what is not below 30 in the last two.
assert.eq([3, 3, 3, 3, 3, 4, 3, 3, 4, 4].map((n) => n + filler), byX.readDistribution.numReadsByRange.map(Number));
const w = byX.writeDistribution;
assert.eq([5, 3, 1, 1], [w.sampleSize.total, w.sampleSize.update, w.sampleSize.delete, w.sampleSize.findAndModify].map(Number));
assert.eq([60, 0, 40, 0, 20, 20], [
    w.percentageOfSingleShardWrites, w.percentageOfMultiShardWrites, w.percentageOfScatterGatherWrites, w.percentageOfShardKeyUpdates,
    w.percentageOfSingleWritesWithoutShardKey, w.percentageOfMultiWritesWithoutShardKey,
]);
const byA = analyze({a: 1});
assert.eq([20, 20], [byA.writeDistribution.percentageOfSingleShardWrites, byA.writeDistribution.percentageOfShardKeyUpdates]);
// Too few keys for the ranges.
assert.commandFailedWithCode(admin.runCommand({analyzeShardKey: "d.c", key: {none: 1}, keyCharacteristics: false}), 4952606);

// Configured anew, switched off, dropped.
assert.eq({mode: "full", samplesPerSecond: 50}, assert.commandWorked(configure({mode: "full", samplesPerSecond: 10})).oldConfiguration);
assert.eq(known[0].startTime, st.config.queryAnalyzers.findOne({_id: "d.c"}).startTime);
const off = assert.commandWorked(configure({mode: "off"}));
assert.eq([{mode: "off"}, {mode: "full", samplesPerSecond: 10}], [off.newConfiguration, off.oldConfiguration]);
assert(!("oldConfiguration" in assert.commandWorked(configure({mode: "off"}))));
const stopped = st.config.queryAnalyzers.findOne({_id: "d.c"});
assert.eq(["off", true], [stopped.mode, stopped.stopTime instanceof Date]);
assert.eq(["d.plain"], rows(st.s).map((row) => row.ns));
assert(db.plain.drop());
assert.eq(null, st.config.queryAnalyzers.findOne({_id: "d.plain"}));
assert.eq([], rows(st.s));
assert.commandWorked(configure({mode: "full", samplesPerSecond: 10}));
assert.commandWorked(coll.renameCollection("renamed"));
assert.eq(0, st.config.queryAnalyzers.find({mode: "full"}).itcount());

for (const [code, more, ns] of [
         [72, {mode: "full"}], [72, {mode: "full", samplesPerSecond: 0}], [72, {mode: "full", samplesPerSecond: -1}],
         [72, {mode: "off", samplesPerSecond: 1}], [2, {mode: "half"}], [40414, {}], [14, {mode: "full", samplesPerSecond: "1"}],
         [40415, {mode: "off", more: 1}], [73, {mode: "off"}, "nothing"], [20, {mode: "off"}, "config.shards"], [20, {mode: "off"}, "d.system.js"],
]) {
    assert.commandFailedWithCode(configure(more, ns || "d.renamed"), code, () => tojson([more, ns]));
}
st.stop();
