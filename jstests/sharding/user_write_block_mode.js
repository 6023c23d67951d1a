/**
 * Through a router user writes are blocked on every shard, and so is what changes the catalog; what moves data goes on.
 * It fails if a shard takes a write or a DDL operation, a migration is refused, a new shard knows nothing of it, or the block outlives its end.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, other: {chunkSize: 1}});
const [s, admin] = [st.s, st.s.getDB("admin")];
const db = s.getDB("user_writes");
const set = (global, reason) => admin.runCommand(Object.assign({setUserWriteBlockMode: 1, global}, reason ? {reason} : {}));
assert.commandWorked(admin.runCommand({enableSharding: "user_writes", primaryShard: st.shard0.shardName}));
assert.commandWorked(admin.runCommand({shardCollection: "user_writes.c", key: {x: 1}}));
assert.commandWorked(admin.runCommand({split: "user_writes.c", middle: {x: 0}}));
assert.commandWorked(admin.runCommand({moveChunk: "user_writes.c", find: {x: 1}, to: st.shard1.shardName}));
assert.commandWorked(db.c.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
assert.commandWorked(db.plain.insert({_id: 1}));

assert.commandWorked(set(true));
const modes = () => [st.rs0, st.rs1].map((rs) => rs.getPrimary().adminCommand({serverStatus: 1}).repl.userWriteBlockMode);
assert.eq([2, 2], modes());
for (const command of [
         {insert: "c", documents: [{x: -2}]}, {insert: "c", documents: [{x: 2}]}, {insert: "plain", documents: [{}]},
         {update: "c", updates: [{q: {}, u: {$set: {y: 1}}, multi: true}]},
         {delete: "c", deletes: [{q: {x: 1}, limit: 1}]},
         {findAndModify: "c", query: {x: 1}, update: {$set: {y: 1}}},
         {aggregate: "c", pipeline: [{$out: "out"}], cursor: {}},
         {aggregate: "plain", pipeline: [{$set: {x: 1}}, {$merge: "c"}], cursor: {}},
         {create: "made"}, {drop: "c"}, {drop: "plain"}, {dropDatabase: 1}, {collMod: "c", validator: {}},
         {createIndexes: "c", indexes: [{key: {y: 1}, name: "y_1"}]}, {dropIndexes: "c", index: "x_1"},
]) {
    assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.UserWritesBlocked, () => tojson(command));
}
for (const command of [
         {renameCollection: "user_writes.c", to: "user_writes.d"}, {shardCollection: "user_writes.made", key: {x: 1}},
         {refineCollectionShardKey: "user_writes.c", key: {x: 1, _id: 1}},
]) {
    assert.commandFailedWithCode(admin.runCommand(command), ErrorCodes.UserWritesBlocked, () => tojson(command));
}
assert.eq([{_id: 1, x: -1}, {_id: 2, x: 1}], db.c.find().sort({_id: 1}).toArray());
assert.commandWorked(admin.runCommand({moveChunk: "user_writes.c", find: {x: 1}, to: st.shard0.shardName, _waitForDelete: true}));
assert.commandWorked(s.getDB("config").settings.update({_id: "automerge"}, {$set: {enabled: true}}, {upsert: true}));

// It is in force again after a restart, and on a shard that comes later. Another reason is no obstacle.
st.restartShardRS(0);
assert.soon(() => modes()[0] === 2);
assert.soonNoExcept(() => db.c.findOne() !== null);
assert.commandFailedWithCode(db.runCommand({insert: "c", documents: [{x: -2}]}), ErrorCodes.UserWritesBlocked);
const more = new ReplSetTest({name: "late", nodes: 1, host: "localhost"});
more.startSet({shardsvr: ""});
more.initiate();
assert.commandWorked(admin.runCommand({addShard: more.getURL()}));
assert.eq(2, more.getPrimary().adminCommand({serverStatus: 1}).repl.userWriteBlockMode);
assert.commandWorked(set(true, "ClusterToClusterMigrationInProgress"));
assert.eq([3, 3], modes());
assert.commandWorked(set(false));
assert.eq([1, 1], modes());
assert.eq(1, more.getPrimary().adminCommand({serverStatus: 1}).repl.userWriteBlockMode);
assert.commandWorked(db.c.insert([{x: -2}, {x: 2}]));
assert.commandWorked(db.c.createIndex({y: 1}));
assert.eq(0, st.config0.getDB("config").getCollection("sharding_configsvr_coordinators").find().itcount());
assert.commandFailedWithCode(st.rs0.getPrimary().adminCommand({setUserWriteBlockMode: 1, global: true}), ErrorCodes.IllegalOperation);

// A change of the catalog that has begun is waited for; one that begins meanwhile is refused at once.
assert.commandWorked(admin.runCommand({shardCollection: "user_writes.gone", key: {x: 1}}));
const point = configureFailPoint(st.rs0.getPrimary(), "hangDdlCoordinatorBeforeRunning_dropCollection");
const dropping = new Thread((host) => new Mongo(host).getDB("user_writes").runCommand({drop: "gone"}), s.host);
dropping.start();
point.wait();
const blocking = new Thread((host) => new Mongo(host).adminCommand({setUserWriteBlockMode: 1, global: true}), s.host);
blocking.start();
assert.soon(() => st.rs0.getPrimary().getDB("config").user_writes_critical_sections.findOne() !== null);
assert.commandFailedWithCode(
    admin.runCommand({shardCollection: "user_writes.late", key: {x: 1}, maxTimeMS: 20000}), ErrorCodes.UserWritesBlocked);
point.off();
assert.commandWorked(dropping.returnData());
assert.commandWorked(blocking.returnData());
assert.commandWorked(set(false));
st.stop();
more.stopSet();
