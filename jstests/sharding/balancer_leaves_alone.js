/**
 * A collection with noBalance stays where it is, on a draining shard too; a shard that does not tell its sizes is left out
 * and the others are balanced; a shard at its maxSize receives nothing.
 * It fails if noBalance is overruled, one silent shard ends the round, or maxSize is accepted and not kept.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, quickRounds} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 3, other: {chunkSize: 1}});
const names = [st.shard0, st.shard1, st.shard2].map((s) => s.shardName);
const [first, second, third] = names;
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "l", primaryShard: first}));
const testDB = st.s.getDB("l");
const pad = "p".repeat(64 * 1024);
function fill(coll) {
    assert.commandWorked(admin.runCommand({shardCollection: coll.getFullName(), key: {_id: 1}}));
    const bulk = coll.initializeUnorderedBulkOp();
    for (let i = 0; i < 128; i++) {
        bulk.insert({_id: i, pad: pad});
    }
    assert.commandWorked(bulk.execute());
}
fill(testDB.kept);
sh.disableBalancing(testDB.kept);
fill(testDB.c);
const owners = (coll) => Array.from(new Set(chunksOf(coll).map((c) => c.shard))).sort();
for (const shard of [st.shard0, st.shard1, st.shard2]) {
    assert.commandWorked(shard.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0}));
}

// The second shard says nothing, the third is full: nobody can receive.
const silent = configureFailPoint(st.shard1, "failCommand", {
    failCommands: ["_shardsvrGetStatsForBalancing"], failInternalCommands: true, errorCode: 2,
}, "alwaysOn");
assert.commandWorked(st.shard2.getDB("local").ballast.insert({pad: "b".repeat(2 * 1024 * 1024)}));
assert.commandWorked(config.shards.update({_id: third}, {$set: {maxSize: NumberLong(1)}}));
const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({balancerStart: 1}));
afterRounds(admin, 5);
assert.eq([first], owners(testDB.c));
const error = config.actionlog.findOne({what: "balancer.error", "details.step": "statistics"});
assert.eq(second, error.ns, tojson(error));

// With room on the third, it receives, and the silent one still does not.
assert.commandWorked(config.shards.update({_id: third}, {$set: {maxSize: NumberLong(100)}}));
assert.soon(() => owners(testDB.c).includes(third), () => tojson(chunksOf(testDB.c)), 60 * 1000);
assert(!owners(testDB.c).includes(second), tojson(chunksOf(testDB.c)));
silent.off();
assert.soon(() => owners(testDB.c).includes(second), () => tojson(chunksOf(testDB.c)), 60 * 1000);
assert.eq([first], owners(testDB.kept));

// Draining: the one goes, the other stays until it may be balanced again.
assert.commandWorked(admin.runCommand({movePrimary: "l", to: second}));
assert.commandWorked(admin.runCommand({removeShard: first}));
assert.soon(() => !owners(testDB.c).includes(first), () => tojson(chunksOf(testDB.c)), 60 * 1000);
afterRounds(admin, 5);
assert.eq([first], owners(testDB.kept));
sh.enableBalancing(testDB.kept);
assert.soon(() => !owners(testDB.kept).includes(first), () => tojson(chunksOf(testDB.kept)), 60 * 1000);
assert.soon(() => admin.runCommand({removeShard: first}).state === "completed");
assert.eq([128, 128], [testDB.kept.find().itcount(), testDB.c.find().itcount()]);
assert.commandWorked(admin.runCommand({balancerStop: 1}));
point.off();
st.stop();
