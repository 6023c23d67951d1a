/**
 * A change of the catalog that was under way when its coordinator was killed is finished after the restart.
 * It fails if a coordinator's document is not taken up again, or half a change stays on the shards or in the catalog.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const config = st.s.getDB("config");
const coordinators = () => st.rs0.getPrimary().getDB("config").getCollection("system.sharding_ddl_coordinators");

/** A database on the first shard with the collection `c` over both. */
function scene(name) {
    assert.commandWorked(st.s.adminCommand({enableSharding: name, primaryShard: first}));
    assert.commandWorked(st.s.adminCommand({shardCollection: `${name}.c`, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: `${name}.c`, middle: {x: 0}}));
    assert.commandWorked(st.s.adminCommand({moveRange: `${name}.c`, min: {x: 0}, max: {x: MaxKey}, toShard: second}));
    assert.commandWorked(st.s.getDB(name).c.insert([{_id: 1, x: -1}, {_id: 2, x: 1}], {writeConcern: {w: "majority"}}));
    assert.commandWorked(st.s.getDB(name).plain.insert({_id: 1}, {writeConcern: {w: "majority"}}));
    return st.s.getDB(name);
}

/** Sends the command, kills the coordinating shard where the fail point holds it up, and waits until it has recovered. */
function interrupted(dbName, command, failPoint) {
    const point = configureFailPoint(st.rs0.getPrimary(), failPoint);
    const sent = new Thread(function(host, dbName, command) {
        try {
            return new Mongo(host).getDB(dbName).runCommand(command);
        } catch (e) {
            return {ok: 0, errmsg: e.toString()};
        }
    }, st.s.host, dbName, command);
    sent.start();
    point.wait();
    assert.eq(1, coordinators().find().itcount());
    st.rs0.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    st.rs0.start(0, {}, true);
    st.rs0.awaitNodesAgreeOnPrimary();
    assert.soonNoExcept(() => coordinators().find().itcount() === 0, () => tojson(coordinators().find().toArray()));
    sent.join();
}
const onShards = (db, name) => [st.rs0, st.rs1].map(
    (rs) => rs.getPrimary().getDB(db.getName()).getCollectionInfos({name: name}).length);

let testDB = scene("dropped");
interrupted("dropped", {drop: "c"}, "hangDdlCoordinatorBeforeRunning_dropCollection");
assert.eq([0, 0], onShards(testDB, "c"));
assert.eq(null, config.collections.findOne({_id: "dropped.c"}));
assert.eq(0, testDB.c.find().itcount());
assert.commandWorked(testDB.c.insert({_id: 1}));

testDB = scene("renamed");
const uuid = config.collections.findOne({_id: "renamed.c"}).uuid;
interrupted("admin", {renameCollection: "renamed.c", to: "renamed.d"}, "hangDdlCoordinatorBeforeRunning_renameMetadata");
assert.eq([[0, 0], [1, 1]], [onShards(testDB, "c"), onShards(testDB, "d")]);
assert.eq(uuid, config.collections.findOne({_id: "renamed.d"}).uuid);
assert.eq(2, testDB.d.find().itcount());

testDB = scene("gone");
interrupted("gone", {dropDatabase: 1}, "hangDdlCoordinatorBeforeRunning_dropDatabase");
assert.eq(null, config.databases.findOne({_id: "gone"}));
assert.eq([0, 0], onShards(testDB, "c"));
assert.eq([0, 0], onShards(testDB, "plain"));

testDB = scene("sharded");
const byHash = {shardCollection: "sharded.h", key: {x: "hashed"}};
interrupted("admin", byHash, "hangDdlCoordinatorBeforeRunning_commitOnShardingCatalog");
const after = config.collections.findOne({_id: "sharded.h"});
assert.commandWorked(st.s.adminCommand(byHash));
if (after) {
    assert.eq(after.uuid, config.collections.findOne({_id: "sharded.h"}).uuid);
}
assert.commandWorked(testDB.h.insert([{x: 1}, {x: 2}, {x: 3}]));
assert.eq(3, testDB.h.find().itcount());

testDB = scene("moved");
interrupted("admin", {movePrimary: "moved", to: second}, "hangDdlCoordinatorBeforeRunning_commit");
const primary = config.databases.findOne({_id: "moved"}).primary;
assert.eq(1, testDB.plain.find().itcount());
assert.eq(1, (primary === first ? st.rs0 : st.rs1).getPrimary().getDB("moved").plain.find().itcount());
assert.commandWorked(testDB.plain.insert({_id: 2}));
assert.eq(2, testDB.c.find().itcount());
st.stop();
