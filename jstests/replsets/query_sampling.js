/**
 * The members of a set sample the queries of their clients, secondaries too, share the rate, and keep the samples until they expire.
 * It fails if a secondary's queries are not kept, if samples do not expire, if an update's changes are not noted, or if a set that is no longer asked to
 * goes on sampling.
 *
 * @tags: [requires_own_servers]
 */
const setParameter = {
    queryAnalysisSamplerConfigurationRefreshSecs: 1, queryAnalysisWriterIntervalSecs: 1, ttlMonitorSleepSecs: 1, analyzeShardKeyNumRanges: 4,
};
const rst = new ReplSetTest({nodes: 2, nodeOptions: {setParameter}});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const secondary = rst.getSecondary();
secondary.setSecondaryOk();
const [admin, db] = [primary.getDB("admin"), primary.getDB("d")];
const configure = (more) => admin.runCommand(Object.assign({configureQueryAnalyzer: "d.c"}, more));
assert.commandWorked(db.c.insert([...Array(40).keys()].map((i) => ({_id: i, x: i})), {writeConcern: {w: 2}}));
assert.commandFailedWithCode(secondary.adminCommand({configureQueryAnalyzer: "d.c", mode: "off"}), ErrorCodes.NotWritablePrimary);
assert.commandWorked(configure({mode: "full", samplesPerSecond: 50}));
const rows = (conn) => conn.getDB("admin").aggregate([{$currentOp: {allUsers: true}}, {$match: {desc: "query analyzer"}}]).toArray();
[primary, secondary].forEach((conn) => assert.soon(() => rows(conn).length === 1));
assert.soon(() => friendlyEqual([25, 25], [primary, secondary].map((conn) => rows(conn)[0].samplesPerSecond)), () => tojson(rows(primary)));

assert.eq(1, secondary.getDB("d").c.find({x: 3}).itcount());
assert.commandWorked(db.c.update({x: 4}, {$set: {x: 400}}));
assert.commandWorked(db.runCommand({update: "c", updates: [{q: {_id: 5}, u: {$set: {y: 1}}}, {q: {y: 7}, u: {$set: {y: 1}}, upsert: true}]}));
assert.commandWorked(admin.runCommand({bulkWrite: 1, nsInfo: [{ns: "d.c"}], ops: [{delete: 0, filter: {x: 6}}, {insert: 0, document: {x: 6}}]}));
const listed = () => admin.aggregate([{$listSampledQueries: {namespace: "d.c"}}]).toArray();
assert.soon(() => listed().length === 5, () => tojson(listed()));
assert.eq(["delete", "find", "update", "update", "update"], listed().map((d) => d.cmdName).sort());
assert.eq(db.getCollectionInfos({name: "c"})[0].info.uuid, listed()[0].collectionUuid);
assert.eq([{x: "u"}, {y: "i"}].map(tojson), primary.getDB("config").sampledQueriesDiff.find().toArray().map((d) => tojson(d.diff)).sort());
const row = rows(primary)[0];
assert.eq([0, 4], [row.sampledReadsCount, row.sampledWritesCount].map(Number), tojson(row));
assert.eq(1, Number(rows(secondary)[0].sampledReadsCount));
assert.eq(4, Number(admin.serverStatus().queryAnalyzers.totalSampledWritesCount));

const reply = assert.commandWorked(admin.runCommand({analyzeShardKey: "d.c", key: {x: 1}, keyCharacteristics: false}));
assert.eq([1, 100], [Number(reply.readDistribution.sampleSize.find), reply.readDistribution.percentageOfSingleShardReads]);
assert.eq([4, 50, 50, 25], [
    Number(reply.writeDistribution.sampleSize.total), reply.writeDistribution.percentageOfSingleShardWrites,
    reply.writeDistribution.percentageOfSingleWritesWithoutShardKey, reply.writeDistribution.percentageOfShardKeyUpdates,
], tojson(reply.writeDistribution));

// What is sampled from now on expires at once.
assert.commandWorked(admin.runCommand({setParameter: 1, queryAnalysisSampleExpirationSecs: 1}));
sleep(2000);
assert.eq(1, db.c.find({x: 9}).itcount());
assert.soon(() => Number(rows(primary)[0].sampledReadsCount) === 1);
assert.soon(() => listed().length === 5 && listed().every((d) => !friendlyEqual(d.cmd.filter, {x: 9})), () => tojson(listed()));

// Dropped, it is sampled no more; so is another of the name.
assert(db.c.drop());
assert.eq(0, primary.getDB("config").queryAnalyzers.find().itcount());
assert.soon(() => rows(primary).length + rows(secondary).length === 0);
assert.commandWorked(db.c.insert({x: 1}));
assert.eq(1, db.c.find({x: 1}).itcount());
assert.eq(0, Number(admin.serverStatus().queryAnalyzers.activeCollections));
rst.stopSet();
