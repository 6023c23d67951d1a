/**
 * While a collection is resharded its users go on, its progress can be seen, and it can be aborted or hastened; what does not go
 * together with it waits, is refused, or ends it.
 * It fails if a write that waited is lost or lands on the old collection, or anything of an aborted operation stays.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground, whileHung} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, mongos: 2});
assert.commandWorked(st.s0.adminCommand({balancerStop: 1}));
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s0.getDB("admin");
const config = st.s0.getDB("config");
const dbName = "beside";
const ns = dbName + ".c";
assert.commandWorked(st.s0.adminCommand({enableSharding: dbName, primaryShard: first}));
const coll = st.s0.getDB(dbName).c;
const stale = st.s1.getDB(dbName).c;
assert.commandWorked(st.s0.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s0.adminCommand({split: ns, middle: {x: 50}}));
assert.commandWorked(st.s0.adminCommand({moveRange: ns, min: {x: 50}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(coll.insert(Array.from({length: 100}, (_, i) => ({_id: i, x: i, y: 100 - i}))));
assert.eq(100, stale.find().itcount());
const entry = () => config.collections.findOne({_id: ns});
const before = entry();
const reshard = (key) => ({reshardCollection: ns, key: key});
const untouched = () => {
    const now = entry();
    assert.eq([before.uuid, before.key, before.timestamp], [now.uuid, now.key, now.timestamp]);
    assert(!("reshardingFields" in now) && !("allowMigrations" in now), tojson(now));
    assert.eq(0, config.reshardingOperations.countDocuments({}));
    for (const shard of [st.shard0, st.shard1]) {
        assert.eq([], shard.getDB(dbName).getCollectionNames().filter((n) => n.includes("resharding")));
        for (const side of ["donor", "recipient"]) {
            assert.eq(0, shard.getDB("config").getCollection("localReshardingOperations." + side).countDocuments({}));
        }
    }
};
const figures = (shard) => shard.adminCommand({serverStatus: 1}).shardingStatistics.resharding;
const running = () => admin.aggregate([{$currentOp: {allUsers: true}}, {$match: {desc: {$regex: "^Resharding"}}}]).toArray();

// Seen while it runs; what conflicts is refused, what is equal joins; aborted, everything is as before.
whileHung(st.shard0, "reshardingPauseCoordinatorInCloning", (point) => {
    const thread = inBackground(admin, reshard({y: 1}));
    point.wait();
    const operation = config.reshardingOperations.findOne({ns: ns});
    assert.eq(["cloning", {y: 1}, "reshardCollection"], [operation.state, operation.reshardingKey, operation.provenance]);
    assert.eq([first, second], operation.donorShards.map((s) => s.id).sort());
    assert.eq(operation._id, entry().reshardingFields.reshardingUUID);
    const rows = running();
    const by = (member) => rows.filter((r) => member in r);
    assert.eq([2, 2, ["cloning"]], [by("recipientState").length, by("donorState").length, by("coordinatorState").map((r) => r.coordinatorState)]);
    assert.eq(["creating-collection", 50, -1], ["recipientState", "approxDocumentsToCopy", "remainingOperationTimeEstimatedSecs"].map((m) => Number(by("recipientState")[0][m]) || by("recipientState")[0][m]));
    const documents = (side) => [st.shard0, st.shard1].map((s) => s.getDB("config").getCollection("localReshardingOperations." + side).findOne({ns: ns}));
    for (const donor of documents("donor")) {
        assert.eq([operation._id, operation.ui, {y: 1}, [first, second]], [donor._id, donor.ui, donor.reshardingKey, donor.recipientShards.sort()]);
        assert.eq(["donating-initial-data", 50], [donor.mutableState.state, Number(donor.mutableState.documentsToClone)]);
        assert.lte(0, timestampCmp(operation.cloneTimestamp, donor.mutableState.minFetchTimestamp));
    }
    for (const recipient of documents("recipient")) {
        assert.eq(["creating-collection", operation.cloneTimestamp], [recipient.mutableState.state, recipient.cloneTimestamp]);
        assert.eq([first, second], recipient.donorShards.sort());
    }
    const steps = figures(st.shard1).currentInSteps;
    assert.eq([1, 1, 0], [2, 3].map((n) => Number(steps["countInstancesIn" + (n === 2 ? "RecipientState2CreatingCollection" : "DonorState2DonatingInitialData")])).concat(Number(steps.countInstancesInCoordinatorState3Cloning)));
    assert.commandFailedWithCode(admin.runCommand({moveRange: ns, min: {x: 50}, max: {x: MaxKey}, toShard: first}), 117);
    assert.commandFailedWithCode(admin.runCommand(reshard({z: 1})), 117);
    const other = dbName + ".other";
    assert.commandWorked(admin.runCommand({shardCollection: other, key: {x: 1}}));
    assert.commandFailedWithCode(admin.runCommand({reshardCollection: other, key: {y: 1}}), 338);
    assert(!("allowMigrations" in config.collections.findOne({_id: other})));
    assert.commandFailedWithCode(admin.runCommand({abortMoveCollection: ns}), 20);
    const joined = inBackground(st.s1.getDB("admin"), reshard({y: 1}));
    // One that came after the end would begin anew, and wait at the fail point.
    assert.soon(() => st.shard0.getDB("admin").currentOp({"command._shardsvrReshardCollection": "c"}).inprog.length === 2);
    assert.commandWorked(stale.insert({_id: 100, x: 100, y: 0}));
    assert.commandWorked(admin.runCommand({abortReshardCollection: ns}));
    assert.commandFailedWithCode(thread.returnData(), 341);
    assert.commandFailedWithCode(joined.returnData(), 341);
});
assert.commandFailedWithCode(admin.runCommand({abortReshardCollection: ns}), 339);
assert.eq([], running());
assert.eq([1, 0, 0, 1], ["countStarted", "countSucceeded", "countFailed", "countCanceled"].map((n) => Number(figures(st.shard0)[n])));
untouched();
assert.eq(101, stale.find().itcount());

// An index waits for it, since the copy would not have it.
whileHung(st.shard0, "reshardingPauseCoordinatorInCloning", (point) => {
    const thread = inBackground(admin, reshard({y: 1}));
    point.wait();
    const indexes = {createIndexes: "c", indexes: [{key: {z: 1}, name: "z_1"}]};
    assert.commandFailedWithCode(coll.getDB().runCommand(Object.assign({}, indexes, {maxTimeMS: 200})), 50);
    // Past the coordinators' locks it ends the operation.
    for (const shard of [st.shard0, st.shard1]) {
        assert.commandWorked(shard.getDB(dbName).runCommand(indexes));
    }
    point.off();
    assert.commandFailedWithCode(thread.returnData(), 11601);
});
untouched();

// Writes in the meantime arrive, whatever they do; one that waits at the end lands on the new owner.
let thread;
const hold = configureFailPoint(st.shard0, "reshardingPauseCoordinatorBeforeBlockingWrites");
thread = inBackground(admin, reshard({y: "hashed"}));
assert.soon(() => config.reshardingOperations.countDocuments({state: "applying"}) === 1);
assert.commandWorked(stale.deleteMany({x: {$lt: 10}}));
assert.commandWorked(coll.updateMany({x: {$gte: 90}}, {$set: {y: -5}}));
assert.commandWorked(coll.insert({_id: "late", x: 7, y: 7}));
assert.eq(1, assert.commandWorked(stale.updateOne({x: 20}, {$inc: {n: 1}})).modifiedCount);
let waiting;
whileHung(st.shard0, "hangDdlCoordinatorBeforeRunning_commit", (point) => {
    const hastened = inBackground(admin, {commitReshardCollection: ns});
    point.wait();
    waiting = new Thread(function(host, dbName) {
        const coll = new Mongo(host).getDB(dbName).c;
        return [
            coll.insert({_id: "waits", x: 55, y: 55}).nInserted, coll.updateOne({x: 30}, {$inc: {n: 1}}).modifiedCount,
        ];
    }, st.s1.host, dbName);
    waiting.start();
    assert.eq(92, coll.find().itcount(), "reads go on");
    assert.soon(() => st.shard0.getDB("admin").currentOp({"command.insert": "c"}).inprog.length +
        st.shard1.getDB("admin").currentOp({"command.insert": "c"}).inprog.length > 0);
    point.off();
    assert.commandWorked(hastened.returnData());
});
hold.off();
assert.commandWorked(thread.returnData());
waiting.join();
assert.eq([1, 1], waiting.returnData());
assert.eq({y: "hashed"}, entry().key);
for (const c of [coll, stale]) {
    assert.eq(93, c.find().itcount());
    assert.eq([0, 11, 1, 1], [
        c.countDocuments({x: {$lt: 7}}), c.countDocuments({y: -5}), c.countDocuments({x: 20, n: 1}),
        c.countDocuments({x: 30, n: 1}),
    ]);
}
assert.eq(93, st.shard0.getDB(dbName).c.find().itcount() + st.shard1.getDB(dbName).c.find().itcount());

// A drop waits for it, and then everything is gone.
let dropping;
whileHung(st.shard0, "reshardingPauseCoordinatorInCloning", (point) => {
    thread = inBackground(admin, reshard({y: 1}));
    point.wait();
    assert.commandFailedWithCode(coll.getDB().runCommand({drop: "c", maxTimeMS: 200}), 50);
    dropping = new Thread(function(host, dbName) {
        return new Mongo(host).getDB(dbName).runCommand({drop: "c"});
    }, st.s1.host, dbName);
    dropping.start();
    point.off();
});
assert.commandWorked(thread.returnData());
dropping.join();
assert.commandWorked(dropping.returnData());
assert.eq(null, entry());
assert.eq(0, coll.find().itcount());
for (const shard of [st.shard0, st.shard1]) {
    assert(!shard.getDB(dbName).getCollectionNames().includes("c"));
}
assert.eq(0, coll.getDB().checkMetadataConsistency().toArray().length);
st.stop();
