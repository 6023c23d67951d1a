/**
 * Databases and collections: names, indexes, administration, statistics, explain. A helper that sent another command
 * than its name says, or swallowed its error, would fail here.
 */
(function() {
"use strict";

const own = db.getSiblingDB(jsTestName());
assert.commandWorked(own.dropDatabase());
const coll = own.shell_collection;

// Names.
assert.eq("shell_collection", coll.getName());
assert.eq(jsTestName() + ".shell_collection", coll.getFullName());
assert.eq(coll.getFullName(), String(coll));
assert.eq(jsTestName(), String(coll.getDB()));
assert.eq(jsTestName() + ".a.b.c", own.a.b.c.getFullName());
assert.eq(own["a.b"].c.getFullName(), own.getCollection("a.b.c").getFullName());
assert.eq("other", own.getSiblingDB("other").getName());
assert.eq("other", own.getSisterDB("other").getName());
assert.eq(coll.getFullName(), db.getMongo().getCollection(coll.getFullName()).getFullName());
assert.eq("test", db.getMongo().getDB("test").getName());
assert.includes(String(db.getMongo()), "connection to ");

// Commands.
assert.commandWorked(own.runCommand("ping"));
assert.commandWorked(own.runCommand({ping: 1}));
assert.commandWorked(own.adminCommand("ping"));
assert.commandWorked(db.getMongo().adminCommand({ping: 1}));
assert.commandFailedWithCode(own.runCommand("noSuchCommand"), ErrorCodes.CommandNotFound);
assert.eq("x", own.runCommand("ping", {comment: "x"})._commandObj.comment);
assert.eq("given", own.runCommand({ping: 1, comment: "given"}, {comment: "extra"})._commandObj.comment);
const failure = assert.throws(() => assert.commandWorked(own.runCommand({noSuchCommand: 1})));
assert.includes(failure.message, "with original command request");
assert.eq("string", typeof db.version());
assert(own.hello().isWritablePrimary);
assert(own._helloOrLegacyHello().isWritablePrimary);
assert.commandFailed(own.rotateCertificates("there are none"));
assert.eq(db.getMongo().getSecondaryOk(), coll.getSlaveOk());
assert.commandWorked(own.serverStatus());
assert.commandWorked(own.stats());
assert.commandWorked(own.hostInfo());
assert.commandWorked(own.currentOp());
assert.commandWorked(own.serverCmdLineOpts());
assert.eq(own.getProfilingLevel(), own.getProfilingStatus().was);
assert.throws(() => own.setProfilingLevel(7));

// Collections.
assert.commandWorked(own.createCollection("made", {capped: true, size: 4096}));
assert.commandFailedWithCode(own.createCollection("made"), ErrorCodes.NamespaceExists);
assert.commandWorked(coll.insert({_id: 1, a: 1}));
assert.eq(["made", "shell_collection"], own.getCollectionNames());
assert.eq(["made"], own.getCollectionInfos({name: "made"}).map(info => info.name));
assert(own.made.isCapped());
assert(!coll.isCapped());
assert.eq("collection", coll.exists().type);
assert.eq(null, own.absent.exists());
assert.contains(jsTestName(), db.getMongo().getDBNames());
assert.commandWorked(coll.renameCollection("renamed"));
assert.eq(null, coll.exists());
assert.commandFailedWithCode(own.renamed.renameCollection("made"), ErrorCodes.NamespaceExists);
assert.commandWorked(own.renamed.renameCollection("made", true));
assert.eq(1, own.made.count());
assert(own.made.drop());
assert.commandWorked(own.createView("view", "shell_collection", [{$match: {a: 2}}]));
assert.commandWorked(coll.insert([{_id: 1, a: 1}, {_id: 2, a: 2}]));
assert.eq([{_id: 2, a: 2}], own.view.find().toArray());
assert(own.view.drop());

// Indexes.
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({b: -1, c: 1}, {name: "named"}));
assert.commandWorked(coll.createIndexes([{d: 1}, {e: 1}], {sparse: true}));
assert.commandWorked(coll.ensureIndex({f: "hashed"}));
assert.eq(["_id_", "a_1", "d_1", "e_1", "f_hashed", "named"], coll.getIndexes().map(index => index.name).sort());
assert.eq({b: -1, c: 1}, coll.getIndexByName("named").key);
assert.eq("a_1", coll.getIndexByKey({a: 1}).name);
assert.eq(6, coll.getIndexKeys().length);
assert.eq(true, coll.getIndexByName("d_1").sparse);
assert.commandWorked(coll.dropIndex("a_1"));
assert.commandWorked(coll.dropIndex({b: -1, c: 1}));
assert.commandFailedWithCode(coll.dropIndex("a_1"), ErrorCodes.IndexNotFound);
assert.commandWorked(coll.hideIndex("d_1"));
assert.eq(true, coll.getIndexByName("d_1").hidden);
assert.commandWorked(coll.unhideIndex({d: 1}));
assert.eq(undefined, coll.getIndexByName("d_1").hidden);
assert.commandWorked(coll.dropIndexes());
assert.eq(["_id_"], coll.getIndexes().map(index => index.name));
assert.eq([], own.absent.getIndexes());
assert.throws(() => coll.createIndex([{a: 1}]));

// Statistics and validation.
assert.eq(2, coll.stats().count);
assert.eq(coll.getFullName(), coll.stats().ns);
assert.gt(coll.dataSize(), 0);
assert.gte(coll.totalSize(), coll.totalIndexSize());
const validated = assert.commandWorked(coll.validate({full: true}));
assert(validated.valid, tojson(validated));

// Explain.
assert.commandWorked(coll.createIndex({a: 1}));
assert.eq("queryPlanner" in coll.find({a: 1}).explain(), true);
const stats = coll.explain("executionStats").find({a: 1}).finish().executionStats;
assert.eq(1, stats.nReturned);
assert.eq(1, coll.find({a: 2}).hint({a: 1}).explain("executionStats").executionStats.totalKeysExamined);
assert.commandWorked(coll.explain().count({a: 1}));
assert.commandWorked(coll.explain().find({a: 1}).sort({a: 1}).limit(1).count());
assert.commandWorked(coll.explain().distinct("a"));
assert.commandWorked(coll.explain().aggregate([{$match: {a: 1}}]));
assert.commandWorked(coll.aggregate([{$match: {a: 1}}], {explain: true}));
assert.commandWorked(coll.explain().update({a: 1}, {$set: {b: 1}}));
assert.commandWorked(coll.explain().remove({a: 1}));
assert.commandWorked(coll.explain().findAndModify({query: {a: 1}, remove: true}));
assert.eq(2, coll.count());
assert.throwsWithCode(() => coll.find({$nosuch: 1}).explain(), ErrorCodes.BadValue);

// References, logs, read preference.
assert.eq({_id: 1, a: 1}, Array.fetchRefs([DBRef(coll.getName(), 1, own.getName())])[0]);
assert.throws(() => db.getMongo().setReadPref("nowhere"));
const other = new Mongo(db.getMongo().host);
other.setReadPref("secondaryPreferred", [{dc: "east"}]);
assert.eq("secondaryPreferred", other.getReadPrefMode());
assert.eq([{dc: "east"}], other.getReadPrefTagSet());
assert.throws(() => other.setReadPref("primary", [{dc: "east"}]));
assert.throws(() => other.setReadConcern("nothing"));
other.setReadConcern("local");
assert.eq("local", other.getReadConcern());
assert.eq(2, other.getDB(jsTestName()).shell_collection.find().itcount());
const asked = new Mongo("mongodb://" + db.getMongo().host + "/named?readPreference=nearest&readConcernLevel=majority&w=1&journal=true&retryWrites=true");
assert.eq("nearest", asked.getReadPrefMode());
assert.eq("majority", asked.getReadConcern());
assert.eq({w: 1, j: true}, asked.getWriteConcern().toJSON());
assert(asked.startSession().getOptions().shouldRetryWrites());
assert(!asked.startSession({retryWrites: false}).getOptions().shouldRetryWrites());
assert(!other.startSession().getOptions().shouldRetryWrites());
assert.eq("own", connect(db.getMongo().host + "/own").getName());

assert(coll.drop());
assert.commandWorked(own.dropDatabase());
assert.doesNotContain(jsTestName(), db.getMongo().getDBNames());
})();
