/**
 * What ReplSetTest tells of its members' data: index builds, hashes by session, recorded documents, writes of an election.
 * It fails if a wait returns while what it waits for is missing, or if a comparison does not see a difference.
 *
 * @tags: [requires_own_servers]
 */
import { ReplSetTest } from "jstests/libs/replsettest.js";

const first = MongoRunner.allocatePort();
const rst = new ReplSetTest({ nodes: 2, startPort: first + 100 });
assert.eq([first + 100, first + 101], rst.ports);
assert.eq(first + 100, rst.startPort);
rst.ports = [first, MongoRunner.allocatePort()];
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const secondary = rst.getSecondary();
secondary.setSecondaryOk();
const coll = primary.getDB("test").c;
assert.commandWorked(coll.getDB().createCollection("c", { changeStreamPreAndPostImages: { enabled: true } }));
assert.commandWorked(coll.insert([{ _id: 1 }, { _id: 2 }]));

rst.waitForStepUpWrites();
rst.waitForAllNewlyAddedRemovals();
const config = rst.getReplSetConfigFromNode(primary);
assert.eq(config.term, assert.commandWorked(primary.adminCommand({ replSetGetStatus: 1 })).term);
rst.awaitSyncSource(secondary, primary);

assert.commandWorked(primary.adminCommand({ configureFailPoint: "failCommand", mode: { times: 1 },
    data: { failCommands: ["createIndexes"], blockConnection: true, blockTimeMS: 500 } }));
const build = startParallelShell(() => assert.commandWorked(db.c.createIndex({ a: 1 })), primary.port);
assert.soon(() => primary.adminCommand({ currentOp: 1, "command.createIndexes": "c" }).inprog.length === 1);
assert.eq(1, coll.getIndexes().length);
rst.waitForAllIndexBuildsToFinish("test", "c");
assert.eq(2, secondary.getDB("test").c.getIndexes().length);
build();
rst.waitForAllIndexBuildsToFinish("test", "absent");

rst.awaitReplication();
const sessions = [primary, secondary].map((node) => node.startSession());
const [one, other] = rst.getHashesUsingSessions(sessions, "test");
assert.eq(one.collections, other.collections);
assert.eq(["c"], Object.keys(one.collections));
assert.eq(one.collections, rst.getHashes("test").secondaries[0].collections);
assert.throws(() => rst.getHashesUsingSessions(sessions, "test", { readAtClusterTime: Timestamp(1, 1) }));
sessions.forEach((session) => session.endSession());

assert.commandWorked(coll.update({ _id: 1 }, { $set: { a: 1 } }));
rst.checkPreImageCollection();
const recorded = (node) => node.getDB("config").getCollection("system.preimages");
assert.eq(1, recorded(primary).find().itcount());
const difference = assert.throws(() => {
    const seen = secondary.getDB;
    secondary.getDB = (name) => (name === "config" ? { getCollection: () => coll } : seen.call(secondary, name));
    try {
        rst.checkPreImageCollection();
    } finally {
        secondary.getDB = seen;
    }
});
assert.includes(difference.message, "system.preimages differs");
rst.stopSet();
