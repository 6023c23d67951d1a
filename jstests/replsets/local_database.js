/**
 * `local` belongs to the node: nothing of it is replicated, and what the set keeps there is not for clients to change.
 * It fails if writes to `local` enter the oplog, need a primary's rules they must not, or the set's own can be dropped.
 *
 * @tags: [requires_replication]
 */
const local = db.getSiblingDB("local");
const oplog = local.getCollection("oplog.rs");
const newest = () => oplog.find().sort({$natural: -1}).limit(1).next().ts;
local.own.drop();

const before = newest();
assert.commandWorked(local.own.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(local.own.update({_id: 1}, {$set: {v: 1}}));
assert.commandWorked(local.own.createIndex({v: 1}));
assert.commandWorked(local.own.remove({_id: 2}));
assert.eq(1, local.own.find().itcount());
assert.eq(0, oplog.find({ts: {$gt: before}, ns: /^local\./}).itcount());
assert.eq(0, oplog.find({ts: {$gt: before}, op: "c", ns: "local.$cmd"}).itcount());

// What is there.
const names = local.getCollectionNames();
for (const name of ["oplog.rs", "startup_log", "system.replset"]) {
    assert.contains(name, names);
}
const startup = local.startup_log.find().sort({$natural: -1}).limit(1).next();
assert.eq("string", typeof startup.hostname);
assert(startup.startTime instanceof Date);
assert.eq(db.version(), startup.buildinfo.version);
assert.gt(Number(startup.pid), 0);
const info = local.getCollectionInfos({name: "oplog.rs"})[0];
assert.eq(true, info.options.capped);
assert.gt(Number(info.options.size), 0);
assert.eq(1, local.getCollection("system.replset").find().itcount());

// The oplog is nobody's to change.
assert.commandFailedWithCode(oplog.insert({a: 1}), 73);
assert.commandFailed(oplog.remove({}));
assert.commandFailedWithCode(local.runCommand({drop: "oplog.rs"}), 20);
assert.commandFailed(local.runCommand({renameCollection: "local.oplog.rs", to: "local.old"}));
assert.commandFailedWithCode(local.runCommand({createIndexes: "oplog.rs", indexes: [{key: {a: 1}, name: "a"}]}), [20, 67, 73]);
assert.commandFailedWithCode(local.dropDatabase(), 20);

// Not renamed across the border.
assert.commandFailedWithCode(
    db.adminCommand({renameCollection: "local.own", to: `${db.getName()}.own`}), 20);

// A majority is met at once: there is nobody else who would have it.
assert.commandWorked(local.runCommand({insert: "own", documents: [{_id: 5}], writeConcern: {w: "majority", wtimeout: 5000}}));
assert(local.own.drop());
