/**
 * A member that is started without its set, written to, and started in the set again: what was written meanwhile is its own.
 * It is in no oplog, starts no term, makes no other member roll back, and what the set did since is caught up with.
 * It fails if the other members take over what was written or dropped there, or if the member does not come back.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: [{}, {}, {rsConfig: {priority: 0}}]});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
const primary = rst.getPrimary();
const db = primary.getDB("test");
const majority = {w: "majority", wtimeout: 60000};
const insert = (id) => assert.commandWorked(
    db.runCommand({insert: "c", documents: [{_id: id, n: id}], writeConcern: majority}));
insert(1);
assert.commandWorked(db.createCollection("kept", {writeConcern: majority}));
rst.awaitReplication();
const term = () => assert.commandWorked(rst.getPrimary().adminCommand({replSetGetStatus: 1})).term;
const before = term();

rst.stop(2);
const alone = MongoRunner.runMongod({dbpath: rst.getDbPath(2), noCleanData: true});
const own = alone.getDB("test");
assert.eq(1, own.c.countDocuments({}));
assert.commandWorked(own.c.insert({_id: "own"}));
assert.commandWorked(own.c.createIndex({n: 1}));
assert(own.kept.drop());
const warnings = assert.commandWorked(alone.adminCommand({getLog: "startupWarnings"})).log;
assert(warnings.some((line) => line.includes("system.replset")), tojson(warnings));
MongoRunner.stopMongod(alone);
insert(2);

// A second start without the set finds what the first left.
const again = MongoRunner.runMongod({dbpath: rst.getDbPath(2), noCleanData: true});
assert.eq(2, again.getDB("test").c.countDocuments({}));
assert.eq(2, again.getDB("test").c.getIndexes().length);
MongoRunner.stopMongod(again);

rst.start(2, {}, true);
rst.awaitSecondaryNodes();
insert(3);
rst.awaitReplication();
assert.eq(before, term());
assert.eq(primary.host, rst.getPrimary().host);
const ids = (node) => {
    node.setSecondaryOk();
    return node.getDB("test").c.find().sort({n: 1, _id: 1}).toArray().map((d) => d._id);
};
assert.eq([1, 2, 3], ids(primary));
assert.eq([1, 2, 3], ids(rst.nodes[1]));
assert.eq(["own", 1, 2, 3], ids(rst.nodes[2]));
assert(db.getCollectionNames().includes("kept"));
assert.eq(1, db.c.getIndexes().length);
assert.eq(2, rst.nodes[2].getDB("test").c.getIndexes().length);
assert.eq(0, rst.nodes[2].getDB("local").oplog.rs.find({"o._id": "own"}).itcount());

// What does not fit its data any more lets it copy everything anew.
assert.commandWorked(db.runCommand({insert: "kept", documents: [{_id: 1}], writeConcern: majority}));
rst.awaitReplication();
assert.soonNoExcept(() => {
    // It refuses reads while it copies.
    assert.eq([1, 2, 3], ids(rst.nodes[2]));
    return true;
});
rst.awaitSecondaryNodes();
assert.eq(1, rst.nodes[2].getDB("test").kept.countDocuments({}));
rst.checkReplicatedDataHashes();
rst.stopSet();
