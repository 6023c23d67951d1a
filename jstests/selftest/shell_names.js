/**
 * The names of the legacy shell that tests call, and what the rarer ones do. A name that is missing ends such a test with
 * "not a function" before it has tested anything.
 */
(function() {
"use strict";

function has(holder, names, where) {
    const missing = names.trim().split(/\s+/).filter(name => !(name in holder));
    assert.eq([], missing, "missing in " + where);
}

has(DBCollection.prototype, `aggregate bulkWrite convertToCapped count countDocuments createIndex createIndexes createSearchIndex
    createSearchIndexes dataSize deleteMany deleteOne disableAutoMerger disableBalancing distinct drop dropIndex dropIndexes
    dropSearchIndex enableAutoMerger enableBalancing ensureIndex estimatedDocumentCount exists explain find findAndModify findOne
    findOneAndDelete findOneAndReplace findOneAndUpdate getDB getFullName getIndexByKey getIndexByName getIndexes getIndexKeys
    getIndices getMongo getName getPlanCache getSearchIndexes getShardDistribution getShardVersion getSplitKeysForChunks getUUID
    getWriteConcern hashAllDocs hideIndex initializeOrderedBulkOp initializeUnorderedBulkOp insert insertMany insertOne isCapped
    latencyStats mapReduce reIndex remove renameCollection replaceOne runCommand runReadCommand save setWriteConcern stats
    storageSize totalIndexSize totalSize unhideIndex unsetWriteConcern update updateMany updateOne updateSearchIndex validate
    verify watch`, "DBCollection");
has(DB.prototype, `adminCommand aggregate auth changeUserPassword createCollection createRole createUser createView currentOp
    dropAllRoles dropAllUsers dropDatabase dropRole dropUser fsyncLock fsyncUnlock getCollection getCollectionInfos
    getCollectionNames getDatabasePrimaryShardId getLastError getLastErrorObj getLogComponents getMongo getName getProfilingLevel
    getProfilingStatus getReplicationInfo getRole getRoles getSession getSiblingDB getSisterDB getUser getUsers
    grantPrivilegesToRole grantRolesToRole grantRolesToUser hello hostInfo isMaster killOp listCommands loadServerScripts logout
    printReplicationInfo printSecondaryReplicationInfo printSlaveReplicationInfo printShardingStatus revokePrivilegesFromRole revokeRolesFromRole
    revokeRolesFromUser runCommand runReadCommand serverBits serverBuildInfo serverCmdLineOpts serverStatus setLogLevel
    setProfilingLevel shutdownServer stats updateRole updateUser version watch _runAggregate _getCollectionInfosCommand`, "DB");
has(Mongo.prototype, `adminCommand bulkWrite getCollection getDB getDBNames getDBs getReadPrefMode getReadPrefTagSet setReadPref
    setReadConcern getReadConcern setWriteConcern getWriteConcern readMode writeMode setReadMode setWriteMode forceReadMode
    forceWriteMode startSession watch isReplicaSetMember isMongos close`, "Mongo");
has(DBQuery.prototype, `addCursorFlag addOption allowDiskUse allowPartialResults batchSize close collation comment count explain
    forEach hasNext hint isClosed isExhausted itcount limit map max maxTimeMS min next noCursorTimeout objsLeftInBatch pretty
    readConcern readPref returnKey showRecordId size skip sort tailable toArray tryNext`, "DBQuery");
has(assert, `adminCommandWorkedAllowingNetworkError between betweenEx betweenIn close closeWithinMS commandFailed
    commandFailedWithCode commandWorked commandWorkedIgnoringWriteConcernErrors commandWorkedIgnoringWriteErrors
    commandWorkedIgnoringWriteErrorsAndWriteConcernErrors commandWorkedOrFailedWithCode contains containsPrefix docEq doesNotContain
    doesNotThrow dropExceptionsWithCode eq fuzzySameMembers gleError gleErrorCode gleErrorRegex gleOK gleSuccess gt gte hasFields
    includes isnull lt lte neq noAPIParams retry retryNoExcept sameMembers setEq soon soonNoExcept soonRetryOnNetworkErrors throws
    throwsWithCode time writeError writeErrorWithCode writeOK`, "assert");
has(ReplSetTest.prototype, `awaitLastOpCommitted awaitNodesAgreeOnPrimary awaitReplication awaitSecondaryNodes awaitSyncSource
    checkCollectionCounts checkOplogs checkPreImageCollection checkReplicatedDataHashes getHashes getHashesUsingSessions getPrimary
    getSecondaries initiate restart startPort startSet stepUp stopSet waitForAllIndexBuildsToFinish
    waitForAllNewlyAddedRemovals waitForState waitForStepUpWrites`, "ReplSetTest");
has(ShardingTest.prototype, `addShard addShardTag addTagRange adminCommand chunkCounts disableAutoMerger disableBalancing
    enableBalancing enableSharding getAnother getOther getPrimaryShardIdForDatabase moveChunk mergeChunks moveRange
    restartAllConfigServers restartAllShards restartConfigServer restartMongos restartShardRS shardColl shardCollection splitAt
    splitFind startBalancer startConfigServers stop stopBalancer`, "ShardingTest");
has(sh, `addShard addShardToZone addTagRange enableAutoMerger moveCollection moveRange reshardCollection shardAndDistributeCollection
    shardCollection status unshardCollection updateZoneKeyRange`, "sh");
has(globalThis, `BinData CountDownLatch HexData ISODate MD5 MapReduceResult MongoRunner NumberDecimal NumberInt NumberLong ObjectId
    PlanCache Random ScopedThread Thread Timestamp UUID _isWindows _isAddressSanitizerActive _isLeakSanitizerActive
    _isSpiderMonkeyDebugEnabled _isThreadSanitizerActive _isUndefinedBehaviorSanitizerActive benchFinish benchRun benchStart cat
    fuzzFile getBuildInfo getHostName hex_md5
    hostname jsTestLog listFiles load ls md5sumFile mkdir print printjson printjsononeline pwd quit removeFile sleep
    startParallelShell tojson tojsononeline tojsonObject version`, "the global object");

const own = db.getSiblingDB(jsTestName());
assert.commandWorked(own.dropDatabase());
const coll = own.shell_names;
const ids = documents => documents.map(document => document._id);

// Connections.
const connection = db.getMongo();
for (const set of ["setReadMode", "setWriteMode"]) {
    connection[set]("commands");
    assert.throws(() => connection[set]("legacy"));
}
const outcome = connection.bulkWrite([
    {name: "insertOne", namespace: coll.getFullName(), document: {_id: 1, a: 1}},
    {name: "insertOne", namespace: own.other.getFullName(), document: {a: 1}},
    {name: "updateOne", namespace: coll.getFullName(), filter: {_id: 1}, update: {$inc: {a: 1}}},
    {name: "replaceOne", namespace: coll.getFullName(), filter: {_id: 2}, replacement: {a: 5}, upsert: true},
    {name: "deleteMany", namespace: own.other.getFullName(), filter: {}},
]);
assert.docEq({acknowledged: true, insertedCount: 2, matchedCount: 1, modifiedCount: 1, deletedCount: 1, upsertedCount: 1}, outcome);
assert.eq([{_id: 1, a: 2}, {_id: 2, a: 5}], coll.find().sort({_id: 1}).toArray());
assert.eq(0, own.other.count());
assert.throwsWithCode(() => connection.bulkWrite([{name: "insertOne", namespace: coll.getFullName(), document: {_id: 1}}]),
    ErrorCodes.DuplicateKey);
assert.throws(() => connection.bulkWrite([{name: "replaceMany", namespace: coll.getFullName()}]));
const verbose = connection.bulkWrite([{name: "deleteOne", namespace: coll.getFullName(), filter: {_id: 2}}], {verboseResults: true});
assert.eq([1], verbose.results.map(result => Number(result.n)));

// Databases and collections.
assert.eq([2], own._runAggregate({aggregate: coll.getName(), pipeline: [{$match: {}}]}, {batchSize: 1}).toArray().map(one => one.a));
assert.eq([coll.getName()], own._getCollectionInfosCommand({name: coll.getName()}, true).map(info => info.name));
assert.eq([coll.getName()], own.getCollectionInfos({name: coll.getName()}, true, false, {comment: "said"}).map(info => info.name));
assert.eq("config", db.getSiblingDB("admin").getDatabasePrimaryShardId());
assert.throws(() => db.getSiblingDB("absent_" + jsTestName()).getDatabasePrimaryShardId());
coll.verify();
if (!jsTest.isMongos(connection)) {
    const hash = coll.hashAllDocs();
    assert.eq("string", typeof hash);
    assert.commandWorked(coll.insert({_id: "more"}));
    assert.neq(hash, coll.hashAllDocs());
    assert.commandWorked(coll.remove({_id: "more"}));
    assert.eq(hash, coll.hashAllDocs());
}
for (const [what, ...given] of [["createSearchIndex", "name", {mappings: {dynamic: true}}], ["createSearchIndexes", [{definition: {}}]],
    ["updateSearchIndex", "name", {mappings: {}}], ["dropSearchIndex", "name"]]) {
    const reply = assert.commandFailed(coll[what](...given));
    assert.eq(what.replace(/Index$/, name => what === "createSearchIndex" ? name + "es" : name), Object.keys(reply._commandObj)[0]);
}
assert.docEq({name: "n", type: "vectorSearch", definition: {fields: []}},
    coll.createSearchIndex("n", "vectorSearch", {fields: []})._commandObj.indexes[0]);
assert.throws(() => coll.createSearchIndex("no definition"));
assert.throws(() => coll.getSearchIndexes());

assert.commandWorked(own.system.js.insert([{_id: "kept_" + jsTestName(), value: function(x) { return x + 1; }}, {_id: "keptValue", value: 7}]));
own.loadServerScripts();
assert.eq(3, globalThis["kept_" + jsTestName()](2));
assert.eq(7, globalThis.keptValue);

// Cursors.
const flagged = coll.find().addCursorFlag("noCursorTimeout").addCursorFlag("partial", true).addCursorFlag("partial", false);
assert.eq(true, flagged._convertToCommand().noCursorTimeout);
assert.eq(undefined, flagged._convertToCommand().allowPartialResults);
assert.throws(() => coll.find().addCursorFlag("awaitEverything"));
assert.eq({_id: 1, a: 2}, flagged.tryNext());
assert.eq(null, flagged.tryNext());
assert.eq(null, coll.aggregate([{$match: {_id: 99}}]).tryNext());

// Results.
const bulk = coll.initializeUnorderedBulkOp();
bulk.find({_id: 1}).updateOne({$set: {b: 1}});
[10, 1, 11].forEach(_id => bulk.insert({_id}));
const failed = assert.throws(() => bulk.execute());
assert.eq([{index: 1, _id: 10}, {index: 3, _id: 11}], failed.getInsertedIds());
const ordered = coll.initializeOrderedBulkOp();
[20, 1, 21].forEach(_id => ordered.insert({_id}));
assert.eq([{index: 0, _id: 20}], assert.throws(() => ordered.execute()).toResult().getInsertedIds());
assert.commandWorked(coll.remove({_id: {$gt: 1}}));

const map = function() { emit(this._id, this.a); };
const reduce = (key, values) => Array.sum(values);
const inline = assert.commandWorked(coll.mapReduce(map, reduce, {out: {inline: 1}}));
assert(inline instanceof MapReduceResult);
assert.eq([{_id: 1, value: 2}], inline.results);
assert.eq({1: 2}, inline.convertToSingleObject());
const stored = coll.mapReduce(map, reduce, "reduced");
assert.eq([1], ids(stored.find().toArray()));
assert.eq({1: 2}, stored.convertToSingleObject());
assert(stored.drop());
assert.eq(0, own.reduced.count());

// Programs.
assert.eq(27500, MongoRunner.parsePort("mongod", "--port", "27500"));
assert.throws(() => MongoRunner.parsePort("mongod"));
assert.eq({port: "27500", quiet: "", verbose: 2, setParameter: {a: "1", b: "x=y"}}, MongoRunner.arrToOpts(
    ["mongod", "--port", "27500", "--quiet", "-vv", "--setParameter", "a=1", "--setParameter", "b=x=y"]));

const file = MongoRunner.dataPath + jsTestName();
writeFile(file, "abc");
fuzzFile(file);
assert.eq([0x9e, 98, 99], Array.from(cat(file, true), (character) => character.charCodeAt(0)));
fuzzFile(file);
assert.eq("abc", cat(file));
writeFile(file + "_empty", "");
assert.throws(() => fuzzFile(file + "_empty"));
assert(removeFile(file));
assert.throws(() => fuzzFile(file));

// The log and assertions.
const printed = print.captureAllOutput(() => jsTest.info("told", {n: 1})).output.join("\n");
assert.includes(printed, "told");
assert.includes(printed, '"n" : 1');
const messageOf = call => assert.throws(call).message;
assert.includes(messageOf(() => assert.eq(1, 2, () => "made when needed")), "made when needed");
for (const call of [() => assert.eq(1, 2, "words", {seen: 7}), () => assert.neq(1, 1, "words", {seen: 7}),
    () => assert.lt(2, 1, "words", {seen: 7}), () => assert.docEq({a: 1}, {a: 2}, "words", {seen: 7}),
    () => assert(false, "words", {seen: 7}), () => assert.contains(1, [2], "words", {seen: 7}),
    () => assert.doesNotContain(1, [1], "words", {seen: 7}), () => assert.containsPrefix("a", ["b"], "words", {seen: 7}),
    () => assert.includes("a", "b", "words", {seen: 7}), () => assert.hasFields({}, ["a"], "words", {seen: 7}),
    () => assert.setEq(new Set([1]), new Set(), "words", {seen: 7}), () => assert.throws(() => 1, [], "words", {seen: 7})]) {
    assert.includes(messageOf(call), 'words { "seen" : 7 }');
}
assert.eq(1, 1, "words", {seen: 7});
})();
