/**
 * Writes that only a deposed primary had are taken back when it follows the new one; its documents are kept in a file, the
 * rollback is counted, and its vote and configuration survive.
 * It fails if such a write stays, if one that a majority had goes, or if the member cannot be started again afterwards.
 *
 * @tags: [requires_own_servers]
 */
import {extractUUIDFromObject} from "jstests/libs/uuid_util.js";
import {hold, letGo} from "jstests/replsets/libs/members.js";

const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
const old = rst.getPrimary();
const oldId = rst.getNodeId(old);
const others = [0, 1, 2].filter((id) => id !== oldId);
const c = old.getDB("test").c;
assert.commandWorked(old.getDB("test").runCommand(
    {insert: "c", documents: [{_id: "kept", n: 0}, {_id: "changed", n: 0}], writeConcern: {w: 3, wtimeout: 60000}}));
assert.commandWorked(old.getDB("test").runCommand({create: "together", writeConcern: {w: 3, wtimeout: 60000}}));
assert.commandWorked(old.getDB("test").runCommand({create: "before", writeConcern: {w: 3, wtimeout: 60000}}));
const rbid = assert.commandWorked(old.adminCommand({replSetGetRBID: 1})).rbid;

// Nobody follows: what is written now stays here.
others.forEach((id) => hold(rst.nodes[id]));
const alone = (command) => assert.commandWorked(old.getDB("test").runCommand(Object.assign(command, {writeConcern: {w: 1}})));
// What is on its way to them is applied later; it holds up what comes after.
alone({insert: "c", documents: [{_id: "fetched"}]});
sleep(500);
alone({insert: "c", documents: [{_id: "lost"}]});
alone({update: "c", updates: [{q: {_id: "changed"}, u: {$inc: {n: 1}}}]});
alone({delete: "c", deletes: [{q: {_id: "kept"}, limit: 1}]});
alone({create: "made"});
// What it has is found under the name that it has by then.
alone({insert: "before", documents: [{_id: "lost"}]});
assert.commandWorked(old.adminCommand({renameCollection: "test.before", to: "test.after", writeConcern: {w: 1}}));
const session = old.startSession();
session.startTransaction({writeConcern: {w: 1}});
session.getDatabase("test").together.insert([{_id: "lost"}, {_id: "lost too"}]);
assert.commandWorked(session.commitTransaction_forTesting());
sleep(500);
rst.stop(oldId, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
others.forEach((id) => letGo(rst.nodes[id]));
const primary = rst.getPrimary();
assert.neq(rst.nodeList()[oldId], primary.host);
assert.commandWorked(primary.getDB("test").runCommand(
    {insert: "c", documents: [{_id: "new"}], writeConcern: {w: "majority", wtimeout: 60000}}));

// It comes back, and gives up what nobody else has.
rst.start(oldId, {}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();
const back = rst.nodes[oldId];
back.setSecondaryOk();
const sorted = (node) => node.getDB("test").c.find().sort({_id: 1}).toArray();
assert.eq([{_id: "changed", n: 0}, {_id: "fetched"}, {_id: "kept", n: 0}, {_id: "new"}], sorted(back));
assert.eq(sorted(primary), sorted(back));
assert(!back.getDB("test").getCollectionNames().includes("made"));
assert.eq(rbid + 1, assert.commandWorked(back.adminCommand({replSetGetRBID: 1})).rbid);
assert.eq(3, back.getDB("local").system.replset.findOne().members.length);
for (const {name, info} of assert.commandWorked(back.getDB("test").runCommand({listCollections: 1})).cursor.firstBatch) {
    const kept = listFiles(rst.getDbPath(oldId) + "/rollback/" + extractUUIDFromObject(info.uuid));
    assert.eq(1, kept.length, () => name + ": " + tojson(kept));
    assert.gt(kept[0].size, 0);
}
rst.checkReplicatedDataHashes();

// The log that was cut can be started from.
rst.restart(oldId);
rst.awaitSecondaryNodes();
rst.awaitReplication();
rst.nodes[oldId].setSecondaryOk();
assert.eq(sorted(rst.getPrimary()), sorted(rst.nodes[oldId]));
rst.stopSet();
