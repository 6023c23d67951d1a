/**
 * The config server can be a shard and stop being one: it takes databases, chunks and transactions like any other, and is emptied first.
 * It fails if what it holds is not found, a transaction on it is none, it is listed wrongly, or something of the shard is left behind.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 1, mongos: 2, other: {chunkSize: 1}});
const [s, admin] = [st.s, st.s.getDB("admin")];
const first = st.shard0.shardName;
const names = () => assert.commandWorked(admin.runCommand({listShards: 1})).shards.map((d) => d._id).sort();
assert.commandFailedWithCode(admin.runCommand({transitionToDedicatedConfigServer: 1}), ErrorCodes.ShardNotFound);
// No shard comes while all shards are kept at once.
const begun = configureFailPoint(st.configRS.getPrimary(), "hangStandstillBefore_begin");
const taking = new Thread((host) => new Mongo(host).adminCommand({tesseraSnapshot: "s"}), s.host);
taking.start();
begun.wait();
assert.commandFailedWithCode(
    admin.runCommand({transitionFromDedicatedConfigServer: 1}), ErrorCodes.ConflictingOperationInProgress);
begun.off();
taking.join();
assert.commandWorked(taking.returnData());
assert.commandWorked(admin.runCommand({tesseraSnapshot: "s", drop: true}));
assert.eq([first], names());
assert.commandWorked(admin.runCommand({transitionFromDedicatedConfigServer: 1}));
assert.commandWorked(admin.runCommand({transitionFromDedicatedConfigServer: 1}));
assert.eq(["config", first].sort(), names());
const map = assert.commandWorked(admin.runCommand({getShardMap: 1}));
assert.eq(["config", first].sort(), Object.keys(map.map).sort());
assert.commandFailedWithCode(admin.runCommand({removeShard: "config"}), ErrorCodes.IllegalOperation);

// One node has a part of the data and the catalog: a snapshot keeps both.
assert.commandWorked(admin.runCommand({tesseraSnapshot: "both"}));
assert.commandWorked(admin.runCommand({tesseraRestore: "both"}));
assert.commandWorked(admin.runCommand({tesseraSnapshot: "both", drop: true}));

// A sharded collection over both, a database of its own, and a transaction over both.
const db = s.getDB("dedicated");
assert.commandWorked(admin.runCommand({enableSharding: "dedicated", primaryShard: first}));
assert.commandWorked(admin.runCommand({shardCollection: "dedicated.c", key: {x: 1}}));
assert.commandWorked(admin.runCommand({split: "dedicated.c", middle: {x: 0}}));
assert.commandWorked(db.c.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
assert.commandWorked(admin.runCommand({moveChunk: "dedicated.c", find: {x: 1}, to: "config", _waitForDelete: true}));
assert.commandWorked(admin.runCommand({enableSharding: "embedded", primaryShard: "config"}));
assert.commandWorked(s.getDB("embedded").plain.insert({_id: 1}));
const stale = st.s1.getDB("embedded");
assert.eq(1, stale.plain.find().itcount());
assert.eq([1, 1], [st.shard0.getDB("dedicated").c.find().itcount(), st.config0.getDB("dedicated").c.find().itcount()]);
assert.eq(2, db.c.find().itcount());
const listed = assert.commandWorked(admin.runCommand({listDatabases: 1})).databases;
assert.eq(["admin", "config", "dedicated", "embedded"], listed.map((d) => d.name).sort());
assert.eq(["config"], Object.keys(listed.find((d) => d.name === "embedded").shards));

const session = s.startSession();
const inside = session.getDatabase("dedicated");
session.startTransaction();
assert.commandWorked(inside.c.insert({_id: 3, x: 2}));
assert.eq(2, db.c.find().itcount());
assert.commandWorked(inside.c.insert({_id: 4, x: -2}));
assert.commandWorked(session.commitTransaction_forTesting());
session.startTransaction();
assert.commandWorked(inside.c.update({x: 1}, {$set: {lost: 1}}));
session.abortTransaction_forTesting();
assert.eq([[1, 2, 3, 4], 0], [db.c.find().sort({_id: 1}).toArray().map((d) => d._id), db.c.find({lost: 1}).itcount()]);
assert.commandWorked(db.c.createIndex({y: 1}));
assert.commandWorked(admin.runCommand({checkMetadataConsistency: 1}));
const stream = db.c.watch();
assert.commandWorked(db.c.insert([{_id: 5, x: 5}, {_id: 6, x: -5}]));
const seen = [];
assert.soon(() => {
    while (stream.hasNext()) {
        seen.push(stream.next().documentKey._id);
    }
    return seen.length === 2;
});
assert.eq([5, 6], seen.sort());
stream.close();

// Back: chunks move by themselves, databases by hand. Stopping leaves it a shard.
const to = () => assert.commandWorked(admin.runCommand({transitionToDedicatedConfigServer: 1}));
assert.commandFailedWithCode(admin.runCommand({getTransitionToDedicatedConfigServerStatus: 1}), ErrorCodes.IllegalOperation);
assert.commandWorked(admin.runCommand({startTransitionToDedicatedConfigServer: 1}));
assert.eq("ongoing", assert.commandWorked(admin.runCommand({getTransitionToDedicatedConfigServerStatus: 1})).state);
assert.commandFailedWithCode(admin.runCommand({commitTransitionToDedicatedConfigServer: 1}), ErrorCodes.RemoveShardDrainingInProgress);
assert.commandWorked(admin.runCommand({stopTransitionToDedicatedConfigServer: 1}));
assert.eq("started", to().state);
assert.eq(["embedded"], to().dbsToMove);
assert.commandWorked(st.config0.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => Number(to().remaining.chunks) === 0, "the balancer leaves chunks on the config server", 60000);
assert.commandWorked(admin.runCommand({movePrimary: "embedded", to: first}));
let last;
assert.soon(() => (last = to()).state === "completed", () => tojson(last), 60000);
assert.eq([first], names());
assert.eq([], st.config0.getDBNames().filter((name) => !["admin", "config", "local"].includes(name)));
assert.eq(0, st.config0.getDB("admin").system.version.find({_id: "shardIdentity"}).itcount());
// A router that has heard nothing of it finds the database for a change of the catalog, too.
assert.commandWorked(stale.runCommand({createIndexes: "plain", indexes: [{key: {y: 1}, name: "y_1"}]}));
assert.eq([6, 1, 1], [db.c, s.getDB("embedded").plain, stale.plain].map((c) => c.find().itcount()));

// And again.
assert.commandWorked(admin.runCommand({transitionFromDedicatedConfigServer: 1}));
assert.commandWorked(admin.runCommand({moveChunk: "dedicated.c", find: {x: 1}, to: "config", _waitForDelete: true}));
assert.eq(6, db.c.find().itcount());
assert.commandWorked(admin.runCommand({moveChunk: "dedicated.c", find: {x: 1}, to: first, _waitForDelete: true}));

// What nobody else has is not dropped.
assert.commandWorked(st.config0.getDB("stray").c.insert({_id: 1}));
assert.soon(() => (last = to()).state === "pendingDataCleanup" && last.collectionsUnknown, () => tojson(last), 60000);
assert.eq(["stray.c"], last.collectionsUnknown);
assert.eq(1, st.config0.getDB("stray").c.find().itcount());
assert(st.config0.getDB("stray").c.drop());
assert.soon(() => (last = to()).state === "completed", () => tojson(last), 60000);
st.stop();
