/**
 * dbCheck compares what the members of a set hold, batch by batch at the same places of the oplog; each member keeps what it found in its health log.
 * It fails if a member that lost a document, or has one too many between two batches, finds nothing, or if a sound one finds a fault.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: [{}, {}, {rsConfig: {priority: 0}}]});
rst.startSet({setParameter: {dbCheckHealthLogEveryNBatches: 1}});
rst.initiate();
rst.awaitSecondaryNodes();
const primary = rst.getPrimary();
const db = primary.getDB("test");
const ids = Array.from({length: 100}, (_, i) => ({_id: 10 * i, n: i}));
assert.commandWorked(db.c.insert(ids, {writeConcern: {w: 3, wtimeout: 60000}}));
assert.commandWorked(db.c.createIndex({n: 1}));
assert.commandWorked(db.capped.insert({_id: 1}));

const log = (node) => {
    node.setSecondaryOk();
    return node.getDB("local").system.healthlog;
};
/** What each member has found since the last check, of the collection. */
let checks = 0;
function found(command, namespace = "test.c") {
    assert.commandWorked(db.runCommand(command));
    checks++;
    return rst.nodes.map((node) => {
        const ended = () => log(node).find({operation: "dbCheckStop"}).itcount();
        assert.soon(() => ended() >= checks, () => tojson(log(node).find().toArray()));
        const all = log(node).find({namespace}).sort({$natural: 1}).toArray();
        const start = all.findLastIndex((d) => d.operation === "dbCheckStart");
        return all.slice(start + 1).filter((d) => d.operation === "dbCheckBatch");
    });
}
const consistent = (d) => d.severity === "info" && d.msg === "dbCheck batch consistent";

// Everybody has the same: ten batches each, which say so.
for (const batches of found({dbCheck: "c", maxDocsPerBatch: 10, validateMode: "dataConsistencyAndMissingIndexKeysCheck"})) {
    assert.eq(10, batches.length, () => tojson(batches));
    assert(batches.every(consistent), () => tojson(batches));
    assert.eq(100, batches.reduce((sum, d) => sum + Number(d.data.count), 0));
    assert.eq({_id: MinKey}, batches[0].data.batchStart);
    assert.eq({_id: MaxKey}, batches[9].data.batchEnd);
}
const [first, second] = found({dbCheck: "c"});
assert.eq(first[0].data.md5, second[0].data.md5);
assert.eq(1, first.length);
// Part of it, and the entries of an index.
for (const batches of found({dbCheck: "c", start: {_id: 100}, end: {_id: 190}, batchWriteConcern: {w: 3}})) {
    assert.eq([10], batches.map((d) => Number(d.data.count)));
}
assert.eq([0, 0, 0], found({dbCheck: "c", validateMode: "extraIndexKeysCheck", secondaryIndex: "n_1"}).map((b) => b.length));
assert.eq(2, found({dbCheck: "c", maxDocsPerBatch: 10, maxCount: 20})[2].length);

// A member that others do not hear of loses a document, and gets one between two batches.
rst.stop(2);
const alone = MongoRunner.runMongod({dbpath: rst.getDbPath(2), noCleanData: true});
assert.commandWorked(alone.getDB("test").c.deleteOne({_id: 500}));
assert.commandWorked(alone.getDB("test").c.insertOne({_id: 95}));
MongoRunner.stopMongod(alone);
rst.start(2, {}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();

const [own, sound, differing] = found({dbCheck: "c", maxDocsPerBatch: 10});
assert(own.every(consistent) && sound.every(consistent), () => tojson([own, sound]));
const faults = differing.filter((d) => !consistent(d));
assert.eq([9, 11], faults.map((d) => Number(d.data.count)).sort((a, b) => a - b), () => tojson(differing));
for (const fault of faults) {
    assert.eq("error", fault.severity);
    assert.eq("dbCheck batch inconsistent", fault.msg);
    assert.neq(fault.data.md5.expected, fault.data.md5.found);
}

// All collections of a database; and what cannot be checked.
const whole = rst.getPrimary().getDB("whole");
assert.commandWorked(whole.a.insert({_id: 1}));
assert.commandWorked(whole.b.insert({_id: 1}));
assert.commandWorked(whole.runCommand({dbCheck: 1}));
assert.soon(() => ["whole.a", "whole.b"].every((namespace) => log(primary).findOne({namespace, operation: "dbCheckStop"})));
assert.commandFailedWithCode(db.runCommand({dbCheck: "none"}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(primary.getDB("local").runCommand({dbCheck: "startup_log"}), 40619);
assert.commandFailedWithCode(primary.getDB("local").runCommand({dbCheck: 1}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({dbCheck: "c", validateMode: "extraIndexKeysCheck"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(rst.getSecondary().getDB("test").runCommand({dbCheck: "c"}), ErrorCodes.NotWritablePrimary);
rst.stopSet(undefined, undefined, {skipCheckDBHashes: true, skipValidation: true});
