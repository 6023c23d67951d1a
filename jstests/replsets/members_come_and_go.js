/**
 * Members are added and removed: a new one copies everything and follows, an arbiter votes and holds nothing, a hidden one
 * is not shown, a removed one says so. Majorities and quorums are those of the configuration in force.
 * It fails if a new member lacks documents, if two voters change at once, or if a removed member goes on.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig as reconfigSet} from "jstests/replsets/libs/members.js";

const rst = new ReplSetTest({nodes: 1, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const db = primary.getDB("test");
const many = [];
for (let i = 0; i < 2000; i++) {
    many.push({_id: i, s: "x".repeat(200), k: i % 7});
}
assert.commandWorked(db.c.insert(many));
assert.commandWorked(db.c.createIndex({k: 1}));
const session = {lsid: {id: UUID()}, txnNumber: NumberLong(1)};
assert.commandWorked(db.runCommand(Object.assign({insert: "c", documents: [{_id: "once"}]}, session)));

const reconfig = (change, options) => reconfigSet(rst, change, options);

// Two voters at a time are refused; one is taken, and copies everything.
const second = rst.add({});
const third = rst.add({});
let reply = reconfig((c) => c.members.push({_id: 1, host: second.host}, {_id: 2, host: third.host}));
assert.commandFailedWithCode(reply, 103);
assert.commandWorked(reconfig((c) => c.members.push({_id: 1, host: second.host})));
rst.awaitSecondaryNodes(60000, [second]);
rst.awaitReplication(60000, undefined, [second]);
// The primary changes the configuration once more when it lets the member vote.
const joins = (m) => "newlyAdded" in m;
assert.soon(() => !assert.commandWorked(primary.adminCommand({replSetGetConfig: 1, $_internalIncludeNewlyAdded: true})).config.members.some(joins));
second.setSecondaryOk();
assert.eq(2001, second.getDB("test").c.find().itcount());
assert.eq(2001, second.getDB("test").c.find({k: {$gte: 0}}).hint({k: 1}).itcount() + 1);
assert.eq(["_id_", "k_1"], second.getDB("test").c.getIndexes().map((i) => i.name).sort());

// An arbiter. It would change what a write waits for that names no concern.
assert.commandWorked(primary.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: 1}}));
assert.commandWorked(reconfig((c) => c.members.push({_id: 2, host: third.host, arbiterOnly: true})));
assert.soon(() => third.adminCommand({hello: 1}).arbiterOnly === true);
assert.soon(() => assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).members[2].stateStr === "ARBITER");
assert.eq([third.host], primary.adminCommand({hello: 1}).arbiters);
assert.eq(0, third.getDB("local").oplog.rs.find().readPref("secondary").itcount());
reply = db.runCommand({insert: "c", documents: [{_id: "w3"}], writeConcern: {w: 3}});
assert.eq(100, reply.writeConcernError.code, tojson(reply));
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: "w2"}], writeConcern: {w: 2, wtimeout: 60000}}));

// A statement that was executed is known to the next primary.
assert.commandWorked(primary.adminCommand({replSetStepDown: 60, force: true}));
assert.soon(() => second.adminCommand({hello: 1}).isWritablePrimary);
reply = assert.commandWorked(
    second.getDB("test").runCommand(Object.assign({insert: "c", documents: [{_id: "once"}]}, session)));
assert.eq(1, reply.n);
assert.eq(1, second.getDB("test").c.find({_id: "once"}).itcount());

// Who is removed says so.
assert.commandWorked(primary.adminCommand({replSetFreeze: 0}));
rst.awaitReplication(60000, undefined, [primary]);
const config = assert.commandWorked(second.adminCommand({replSetGetConfig: 1})).config;
config.members = config.members.filter((m) => m.host !== primary.host);
config.version++;
assert.commandWorked(second.adminCommand({replSetReconfig: config, maxTimeMS: 60000}));
assert.soon(() => {
    const hello = primary.adminCommand({hello: 1});
    return !hello.isWritablePrimary && !hello.secondary && !("hosts" in hello);
}, "a removed member goes on");
assert.commandWorked(second.getDB("test").runCommand(
    {insert: "c", documents: [{_id: "after"}], writeConcern: {w: "majority", wtimeout: 60000}}));
rst.stopSet(undefined, false, {skipCheckDBHashes: true, skipValidation: true});
