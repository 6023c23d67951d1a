/**
 * Three members: what is written on the primary is on all of them, with its indexes, views and times; reads and write
 * concerns say the right things on each.
 * It fails if a member lacks an entry, a secondary takes writes or unmarked reads, or a write concern is met too early.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
rst.awaitSecondaryNodes();
const [one, two] = rst.getSecondaries();
const db = primary.getDB("test");

// Writes of every kind, and catalog changes.
assert.commandWorked(db.c.insert([{_id: 1, a: 1}, {_id: 2, a: 2}, {_id: 3, a: 3}]));
assert.commandWorked(db.c.update({_id: 1}, {$set: {b: [1, 2, 3]}, $inc: {a: 10}}));
assert.commandWorked(db.c.remove({_id: 2}));
assert.commandWorked(db.c.createIndex({a: 1}, {unique: true}));
assert.commandWorked(db.createCollection("capped", {capped: true, size: 4096, max: 2}));
for (let i = 0; i < 5; i++) {
    assert.commandWorked(db.capped.insert({_id: i}));
}
assert.commandWorked(db.createView("v", "c", [{$match: {a: {$gt: 3}}}]));
assert.commandWorked(db.old.insert({_id: 1}));
assert.commandWorked(db.old.renameCollection("renamed"));
assert.commandWorked(db.gone.insert({_id: 1}));
assert(db.gone.drop());
rst.awaitReplication();

for (const node of [one, two]) {
    const copy = node.getDB("test");
    node.setSecondaryOk();
    assert.sameMembers([{_id: 1, a: 11, b: [1, 2, 3]}, {_id: 3, a: 3}], copy.c.find().toArray());
    assert.eq(["_id_", "a_1"], copy.c.getIndexes().map((i) => i.name).sort());
    assert.eq([3, 4], copy.capped.find().toArray().map((d) => d._id));
    assert.eq([{_id: 1, a: 11, b: [1, 2, 3]}], copy.v.find().toArray());
    assert.sameMembers(["c", "capped", "renamed", "system.views", "v"], copy.getCollectionNames());
    // The same entries at the same times.
    const last = (n) => n.getDB("local").oplog.rs.find({op: "i", ns: "test.c"}).sort({$natural: -1}).limit(1).next();
    assert.eq(last(primary), last(node));
}
rst.checkReplicatedDataHashes();

// A secondary refuses writes, and reads that do not allow for it.
const copy = one.getDB("test");
assert.commandFailedWithCode(copy.runCommand({insert: "c", documents: [{_id: 9}]}), 10107);
assert.commandFailedWithCode(copy.runCommand({find: "c", $readPreference: {mode: "primary"}}), 13435);
assert.commandWorked(copy.runCommand({find: "c", $readPreference: {mode: "secondary"}}));

// Everybody knows everybody.
const hello = assert.commandWorked(one.adminCommand({hello: 1}));
assert.eq(3, hello.hosts.length, tojson(hello));
assert.eq(primary.host, hello.primary);
assert.eq(false, hello.isWritablePrimary);
assert.eq(true, hello.secondary);
assert(!("electionId" in hello));
// The primary learns by a heartbeat that a copy is done.
let status;
assert.soon(() => {
    status = assert.commandWorked(primary.adminCommand({replSetGetStatus: 1}));
    return status.members.every((m) => ["PRIMARY", "SECONDARY"].includes(m.stateStr));
});
assert.sameMembers(["PRIMARY", "SECONDARY", "SECONDARY"], status.members.map((m) => m.stateStr));
assert.eq([2, 2, 3], [status.majorityVoteCount, status.writeMajorityCount, status.votingMembersCount]);
assert(status.members.every((m) => m.health === 1), tojson(status));

// Write concerns.
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 10, a: 10}], writeConcern: {w: 3, wtimeout: 60000}}));
assert.eq(1, copy.c.find({_id: 10}).itcount());
let reply = db.runCommand({insert: "c", documents: [{_id: 11, a: 12}], writeConcern: {w: 4}});
assert.eq(100, reply.writeConcernError.code, tojson(reply));
reply = db.runCommand({insert: "c", documents: [{_id: 12, a: 13}], writeConcern: {w: "nowhere"}});
assert.eq(79, reply.writeConcernError.code, tojson(reply));

// With a member that does not fetch, w: 3 waits and a majority does not.
assert.commandWorked(two.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "alwaysOn"}));
reply = db.runCommand({insert: "c", documents: [{_id: 13, a: 14}], writeConcern: {w: 3, wtimeout: 500}});
assert.eq(64, reply.writeConcernError.code, tojson(reply));
assert.eq(true, reply.writeConcernError.errInfo.wtimeout);
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 14, a: 15}], writeConcern: {w: "majority", wtimeout: 60000}}));
assert.commandWorked(two.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "off"}));
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 15, a: 16}], writeConcern: {w: 3, wtimeout: 60000}}));

// A read after a cluster time waits for it.
const written = assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 16, a: 17}], writeConcern: {w: 1}}));
reply = assert.commandWorked(two.getDB("test").runCommand(
    {
        find: "c", filter: {_id: 16}, readConcern: {level: "majority", afterClusterTime: written.operationTime},
        $clusterTime: written.$clusterTime, $readPreference: {mode: "secondary"}, maxTimeMS: 60000
    }));
assert.eq(1, reply.cursor.firstBatch.length);
rst.stopSet();
