/**
 * Tests hold index builds at fail points, whatever the size of the collection, and look at them and end them there.
 * It fails if a small collection is indexed past a fail point that is set, if a held build is not shown, or if dropIndexes, killOp or drop leave it.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
import {configureFailPoint} from "jstests/libs/fail_point_util.js";
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";
import {extractUUIDFromObject} from "jstests/libs/uuid_util.js";

const coll = db.index_build_points;
coll.drop();
assert.commandWorked(coll.insert([{a: 1, b: 1}, {a: 2, b: 1}, {a: 3, b: 2}]));
const uuid = extractUUIDFromObject(db.getCollectionInfos({name: coll.getName()})[0].info.uuid);

/** Begins to build an index in another shell; the function returned waits for its end, with the message that was expected. */
function begin(key, options, code, pattern) {
    return startParallelShell(funWithArgs((name, key, options, code, pattern) => {
        const reply = db.runCommand({createIndexes: name, indexes: [{key, name: Object.keys(key).join("_"), ...options}]});
        assert.eq(code, reply.code ?? 0, tojson(reply));
        if (pattern) assert(new RegExp(pattern).test(reply.errmsg), `${reply.errmsg} does not match ${pattern}`);
    }, coll.getName(), key, options, code, pattern), db.getMongo().port);
}
const failed = (why) => `^Index build failed: [0-9a-f-]{36}: Collection ${coll.getFullName()} \\( ${uuid} \\) :: caused by :: ${why}`;
const operation = () => db.currentOp({"command.createIndexes": coll.getName()}).inprog[0];
const names = () => coll.getIndexes().map((index) => index.name).sort();

jsTest.log("Each point holds the build, and the index is not there before.");
const points = [
    "hangCreateIndexesBeforeStartingIndexBuild", "hangAfterSettingUpIndexBuild", "hangAfterSettingUpIndexBuildUnlocked",
    "hangAfterInitializingIndexBuild", "hangAfterStartingIndexBuild", "hangAfterStartingIndexBuildUnlocked",
    "hangAfterIndexBuildDumpsInsertsFromBulk", "hangAfterIndexBuildDumpsInsertsFromBulkLock", "hangAfterIndexBuildFirstDrain",
    "hangIndexBuildBeforeSignalPrimaryForCommitReadiness", "hangAfterIndexBuildSecondDrain", "hangIndexBuildBeforeCommit",
];
points.forEach((name, i) => {
    const point = configureFailPoint(db, name);
    const join = begin({a: 1}, {}, 0);
    point.wait();
    assert.eq(name, operation().failpointMsg);
    assert.commandWorked(coll.insert({_id: name, a: 100 + i}));
    assert.throws(() => coll.find({a: 1}).hint({a: 1}).itcount());
    point.off();
    join();
    assert.eq(i + 4, coll.find({a: {$gt: 0}}).hint({a: 1}).itcount());
    assert.commandWorked(coll.dropIndex("a"));
});

jsTest.log("A held build is shown.");
const started = configureFailPoint(db, "hangAfterStartingIndexBuild");
let join = begin({a: 1}, {}, 0);
started.wait();
const shown = operation();
assert(shown.msg.startsWith("Index Build: scanning collection"), tojson(shown));
assert.eq([0, 15], [Number(shown.progress.done), Number(shown.progress.total)]);
assert.eq(["_id_", "a"], names());
const list = (flags) => assert.commandWorked(db.runCommand({listIndexes: coll.getName(), ...flags})).cursor.firstBatch;
const [id, a] = list({includeBuildUUIDs: true});
assert.eq(["_id_", "a", 4], [id.name, a.spec.name, a.buildUUID.subtype()]);
assert.eq(a.buildUUID, list({includeIndexBuildInfo: true})[1].indexBuildInfo.buildUUID);
assert.eq([["a"], 2], [coll.stats().indexBuilds, coll.stats().nindexes]);

jsTest.log("Another namespace is not held.");
started.off();
join();
assert.eq([], coll.stats().indexBuilds);
assert.commandWorked(coll.dropIndexes());

jsTest.log("Of several indexes of one command the ready one goes with that which is being built.");
const second = configureFailPoint(db, "hangAfterStartingIndexBuild", {}, {skip: 1});
const joinBoth = startParallelShell(funWithArgs((name) => assert.commandFailed(db.runCommand({
    createIndexes: name, indexes: [{key: {a: 1}, name: "a"}, {key: {b: 1}, name: "b"}],
})), coll.getName()), db.getMongo().port);
assert.soon(() => names().includes("a") && operation() && operation().failpointMsg);
assert.commandWorked(db.runCommand({dropIndexes: coll.getName(), index: ["a", "b"]}));
second.off();
joinBoth();
assert.eq(["_id_"], names());
const elsewhere = configureFailPoint(db, "hangAfterStartingIndexBuild", {nss: "test.another"});
assert.commandWorked(coll.createIndex({a: 1}));
elsewhere.off();
assert.commandWorked(coll.dropIndexes());

jsTest.log("dropIndexes ends it: by name, by key, all, or by a list with one that is there.");
for (const index of ["a", {a: 1}, "*", ["a"], ["a", "c_1"]]) {
    assert.commandWorked(coll.createIndex({c: 1}));
    const hung = configureFailPoint(db, "hangAfterStartingIndexBuild");
    join = begin({a: 1}, {}, ErrorCodes.IndexBuildAborted, failed("dropIndexes command"));
    hung.wait();
    assert.commandFailedWithCode(db.runCommand({dropIndexes: coll.getName(), index: "none"}), ErrorCodes.IndexNotFound);
    assert.commandWorked(db.runCommand({dropIndexes: coll.getName(), index}));
    join();
    hung.off();
    assert.eq(index === "*" || index[1] === "c_1" ? ["_id_"] : ["_id_", "c_1"], names(), tojson(index));
}
assert.commandWorked(coll.dropIndexes());

jsTest.log("So do killOp, and a drop of the collection; what its client waits no longer for ends, too.");
let hung = configureFailPoint(db, "hangIndexBuildBeforeCommit");
join = begin({a: 1}, {}, ErrorCodes.Interrupted);
hung.wait();
assert.commandWorked(db.killOp(operation().opid));
join();
assert.commandFailedWithCode(
    db.runCommand({createIndexes: coll.getName(), indexes: [{key: {a: 1}, name: "a"}], maxTimeMS: 200}), ErrorCodes.MaxTimeMSExpired);
assert.eq(["_id_"], names());
hung.off();
hung = configureFailPoint(db, "hangIndexBuildBeforeCommit");
join = begin({a: 1}, {}, ErrorCodes.IndexBuildAborted, failed("collection dropped"));
hung.wait();
assert(coll.drop());
join();
hung.off();

jsTest.log("What the documents do not allow says which build has failed, held or not; a bad definition does not.");
assert.commandWorked(coll.insert([{b: 1}, {b: 1}]));
const createUnique = () => db.runCommand({createIndexes: coll.getName(), indexes: [{key: {b: 1}, name: "b", unique: true}]});
const duplicate = assert.commandFailedWithCode(createUnique(), ErrorCodes.DuplicateKey);
assert(/^Index build failed: .* :: caused by :: E11000 duplicate key error collection: /.test(duplicate.errmsg), tojson(duplicate));
assert.eq({b: 1}, duplicate.keyValue);
const cleanUp = configureFailPoint(db, "hangIndexBuildBeforeAbortCleanUp");
join = startParallelShell(funWithArgs((name) => {
    assert.commandFailedWithCode(db.runCommand({createIndexes: name, indexes: [{key: {b: 1}, name: "b", unique: true}]}), 11000);
}, coll.getName()), db.getMongo().port);
cleanUp.wait();
cleanUp.off();
join();
const onCommit = configureFailPoint(db, "failIndexBuildOnCommit");
assert.commandFailedWithCode(coll.createIndex({b: 1}), 4698903);
onCommit.off();
assert.commandWorked(coll.createIndex({b: 1}));
assert(/^(?!Index build failed)/.test(coll.createIndex({b: 1}, {unique: true}).errmsg));
assert.eq(["_id_", "b_1"], names());
