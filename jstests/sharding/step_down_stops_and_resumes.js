/**
 * What a primary does by itself stops when it steps down and goes on when it is primary again: a migration that was under
 * way, the deletion of what was moved, the expiry of documents, the balancer of the config server.
 * It fails if one of them goes on under a secondary, or is not taken up by the next reign.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground} from "jstests/sharding/libs/cluster.js";

const parameters = {ttlMonitorSleepSecs: 1, orphanCleanupDelaySecs: 1};
const st = new ShardingTest({
    shards: 2,
    mongos: 1,
    other: {rsOptions: {setParameter: parameters}, configOptions: {setParameter: {}}}
});
const db = st.s.getDB("test");
const coll = db.c;
assert.commandWorked(db.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(db.adminCommand({shardCollection: "test.c", key: {x: 1}}));
assert.commandWorked(db.adminCommand({split: "test.c", middle: {x: 0}}));
for (let x = -20; x < 20; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = st.rs0.getPrimary();
const recipient = st.rs1.getPrimary();
const admin = donor.getDB("admin");
const writable = () => admin.runCommand({hello: 1}).isWritablePrimary;

// A migration whose donor steps down in the middle is ended by the next reign, one way or the other.
const point = configureFailPoint(recipient, "migrateThreadHangAtStep3");
const move = inBackground(st.s.getDB("admin"), {moveRange: "test.c", min: {x: 0}, max: {x: MaxKey}, toShard: st.shard1.shardName});
point.wait();
assert.eq(1, donor.getDB("config").migrationCoordinators.find().itcount());
assert.commandWorked(admin.runCommand({replSetStepDown: 3600, force: true}));
point.off();
sleep(300);
assert.eq(1, donor.getDB("config").migrationCoordinators.find().readPref("secondary").itcount(),
    "a secondary's coordinator went on");
assert.commandWorked(admin.runCommand({replSetStepUp: 1}));
assert.soon(writable);
move.join();
assert.soon(() => donor.getDB("config").migrationCoordinators.find().itcount() === 0, "the migration is not taken up");
assert.soon(() => donor.getDB("config").rangeDeletions.find().itcount() === 0);
assert.eq(40, coll.find().itcount());

// A range that was moved is deleted by the next reign, and not by a secondary.
assert.commandWorked(donor.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 2}));
assert.commandWorked(db.adminCommand({moveRange: "test.c", min: {x: 0}, max: {x: MaxKey}, toShard: st.shard1.shardName}));
const held = () => donor.getDB("test").c.find({x: {$gte: 0}}).readPref("secondary").itcount();
if (st.getPrimaryShard("test").shardName === st.shard0.shardName && held() > 0) {
    assert.commandWorked(admin.runCommand({replSetStepDown: 3600, force: true}));
    sleep(2500);
    assert.eq(20, held(), "a secondary deleted a range");
    assert.commandWorked(admin.runCommand({replSetStepUp: 1}));
}
assert.soon(() => donor.getDB("config").rangeDeletions.find().itcount() === 0, "the deletion is not taken up");
assert.eq(0, held());
assert.eq(40, coll.find().itcount());

// Documents expire under a primary only.
const expiring = donor.getDB("admin").expiring;
assert.commandWorked(expiring.createIndex({at: 1}, {expireAfterSeconds: 1}));
assert.commandWorked(expiring.insert({_id: 1, at: new Date()}));
assert.commandWorked(admin.runCommand({replSetStepDown: 3600, force: true}));
sleep(2500);
assert.eq(1, expiring.find().readPref("secondary").itcount(), "a document expired on a secondary");
assert.commandWorked(admin.runCommand({replSetStepUp: 1}));
assert.soon(() => expiring.find().itcount() === 0, "expiry is not taken up");

// The balancer follows the config server's primary.
const config = st.configRS.getPrimary();
const rounds = () => assert.commandWorked(st.s.adminCommand({balancerStatus: 1})).numBalancerRounds;
assert.commandWorked(config.adminCommand({replSetStepDown: 3600, force: true}));
assert.commandWorked(config.adminCommand({replSetStepUp: 1}));
const before = rounds();
assert.commandWorked(st.s.adminCommand({balancerStart: 1}));
assert.soon(() => rounds() > before, "the balancer is not taken up");
st.stop();
