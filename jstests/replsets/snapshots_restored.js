/**
 * A test suite starts each of its tests from the same state: a set goes back to a snapshot, on every member and over a kill.
 * It fails if a member keeps what was made since, if a cursor or a transaction from before goes on, or if the clock goes back.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3});
rst.startSet();
rst.initiate();
let primary = rst.getPrimary();
rst.awaitSecondaryNodes();
let db = primary.getDB("d");
const admin = () => primary.getDB("admin");
const ids = () => db.c.find().sort({_id: 1}).toArray().map((d) => d._id);

assert.commandWorked(db.c.insert([...Array(200).keys()].map((i) => ({_id: i, x: i % 5}))));
assert.commandWorked(db.c.createIndex({x: 1}));
assert.commandWorked(db.createView("v", "c", [{$match: {x: 1}}]));
assert.commandWorked(db.getSiblingDB("other").kept.insert({_id: 1}));
assert.eq(3, assert.commandWorked(admin().runCommand({tesseraSnapshot: "base"})).collections);
const uuid = db.getCollectionInfos({name: "c"})[0].info.uuid;
const before = db.runCommand({dbHash: 1}).collections;
const taken = assert.commandWorked(db.runCommand({ping: 1})).$clusterTime.clusterTime;

function change() {
    assert.commandWorked(db.c.remove({_id: {$lt: 50}}));
    assert.commandWorked(db.c.update({}, {$set: {y: 1}}, {multi: true}));
    assert.commandWorked(db.c.dropIndex("x_1"));
    assert.commandWorked(db.since.insert({_id: 1}));
    assert(db.getSiblingDB("other").kept.drop());
    assert(db.v.drop());
}
function checkBase() {
    assert.eq(before, db.runCommand({dbHash: 1}).collections);
    assert.eq(["c", "system.views", "v"], db.getCollectionNames().sort());
    assert.eq(uuid, db.getCollectionInfos({name: "c"})[0].info.uuid);
    assert.eq(40, db.v.find().itcount());
    assert.eq(40, db.c.find({x: 2}).hint("x_1").itcount());
    assert.eq([{_id: 1}], db.getSiblingDB("other").kept.find().toArray());
}

// Snapshots are nobody's databases.
const names = assert.commandWorked(admin().runCommand({listDatabases: 1})).databases.map((d) => d.name);
assert(names.every((name) => !name.startsWith("$")), tojson(names));
assert.commandFailedWithCode(primary.getDB("$snapshot:base:d").runCommand({find: "c"}), ErrorCodes.InvalidNamespace);

// Twice, with what was open meanwhile.
for (let round = 0; round < 2; round++) {
    change();
    const open = assert.commandWorked(db.runCommand({find: "c", batchSize: 5})).cursor.id;
    const session = primary.startSession();
    session.startTransaction();
    assert.commandWorked(session.getDatabase("d").c.insert({_id: "in a transaction"}));
    const stream = assert.commandWorked(db.runCommand({aggregate: "c", pipeline: [{$changeStream: {}}], cursor: {}})).cursor.id;
    assert.eq(3, assert.commandWorked(admin().runCommand({tesseraRestore: "base"})).collections);
    checkBase();
    assert.commandFailedWithCode(db.runCommand({getMore: open, collection: "c"}), ErrorCodes.CursorNotFound);
    assert.commandFailedWithCode(db.runCommand({getMore: stream, collection: "c"}), ErrorCodes.CursorNotFound);
    assert.commandFailedWithCode(session.commitTransaction_forTesting(), ErrorCodes.NoSuchTransaction);
    session.endSession();
    assert.lt(taken, db.runCommand({ping: 1}).$clusterTime.clusterTime);
}
rst.awaitReplication();
rst.checkReplicatedDataHashes();
for (const node of rst.getSecondaries()) {
    node.setSecondaryOk();
    assert.eq(40, node.getDB("d").v.find().itcount());
    assert.eq(0, node.getDB("d").since.find().itcount());
}

// What was written since stands in a change stream as the end of the collection.
const start = db.runCommand({ping: 1}).$clusterTime.clusterTime;
change();
assert.commandWorked(admin().runCommand({tesseraRestore: "base"}));
const since = {$changeStream: {startAtOperationTime: start}};
const events = db.aggregate([since], {cursor: {batchSize: 1000}});
const types = [];
assert.soon(() => {
    while (events.hasNext()) {
        const event = events.next();
        types.push(`${event.operationType} ${event.ns.coll}`);
    }
    return types.includes("drop since");
});
assert(types.includes("drop c"), tojson(types));

// Another primary has the snapshot too, and a killed one still has it.
change();
assert.commandWorked(db.c.insert({_id: "journaled"}, {writeConcern: {w: 3, j: true}}));
rst.stepUp(rst.getSecondaries()[0]);
primary = rst.getPrimary();
db = primary.getDB("d");
assert.commandWorked(admin().runCommand({tesseraRestore: "base", writeConcern: {w: 3}}));
checkBase();
const at = rst.getNodeId(primary);
rst.stop(at, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
rst.start(at, {}, true);
primary = rst.getPrimary();
db = primary.getDB("d");
checkBase();
change();
assert.commandWorked(admin().runCommand({tesseraRestore: "base"}));
checkBase();

assert.eq([{name: "base", collections: 3}], admin().runCommand({tesseraSnapshots: 1}).snapshots);
assert.commandWorked(admin().runCommand({tesseraSnapshot: "base", drop: true}));
assert.commandFailedWithCode(admin().runCommand({tesseraRestore: "base"}), ErrorCodes.NamespaceNotFound);
rst.stopSet();
