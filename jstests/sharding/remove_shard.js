/**
 * A shard is removed in steps: it drains, tells what is left, and goes when nothing is; the last one never goes.
 * It fails if a shard with data goes, new data goes to a draining one, or the reply loses a field that scripts wait for.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const admin = st.s.getDB("admin");
const config = st.s.getDB("config");
const remove = (name) => admin.runCommand({removeShard: name});
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.commandWorked(admin.runCommand({enableSharding: "a", primaryShard: first}));
assert.commandWorked(admin.runCommand({enableSharding: "b", primaryShard: second}));
assert.commandWorked(admin.runCommand({shardCollection: "a.c", key: {x: 1}}));
assert.commandWorked(admin.runCommand({split: "a.c", middle: {x: 0}}));
assert.commandWorked(admin.runCommand({moveRange: "a.c", min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true}));
assert.commandWorked(st.s.getDB("a").c.insert([{x: -1}, {x: 1}]));
assert.commandWorked(st.s.getDB("b").plain.insert({_id: 1}));

assert.commandFailedWithCode(remove("no such shard"), 70);
let reply = assert.commandWorked(remove(second));
assert.eq("started", reply.state);
assert.eq("draining started successfully", reply.msg);
assert.eq(second, reply.shard);
assert.eq(["b"], reply.dbsToMove);
assert.eq(true, config.shards.findOne({_id: second}).draining);
assert.eq(true, admin.runCommand({listShards: 1}).shards.find((s) => s._id === second).draining);

reply = assert.commandWorked(remove(second));
assert.eq("ongoing", reply.state);
assert.eq("draining ongoing", reply.msg);
assert.eq(1, Number(reply.remaining.chunks));
assert.eq(1, Number(reply.remaining.dbs));
assert.eq(0, Number(reply.remaining.jumboChunks));
assert.eq(["b"], reply.dbsToMove);

// Nothing new comes to a draining shard.
assert.commandFailed(admin.runCommand({moveRange: "a.c", min: {x: MinKey}, max: {x: 0}, toShard: second}));
assert.commandFailedWithCode(remove(first), [20, 117]);
assert.commandFailed(admin.runCommand({movePrimary: "a", to: second}));
assert.commandWorked(admin.runCommand({shardCollection: "a.h", key: {_id: "hashed"}}));
const hashed = config.collections.findOne({_id: "a.h"}).uuid;
assert.eq(0, config.chunks.find({uuid: hashed, shard: second}).itcount());
assert.commandWorked(st.s.getDB("later").c.insert({_id: 1}));
assert.eq(first, config.databases.findOne({_id: "later"}).primary);

// The balancer takes the chunks away; databases are moved by hand.
assert.eq(2, st.s.getDB("a").c.find().itcount());
st.rs0.getPrimary().adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0});
st.rs1.getPrimary().adminCommand({setParameter: 1, orphanCleanupDelaySecs: 0});
const point = configureFailPoint(st.configRS.getPrimary(), "overrideBalanceRoundInterval", {intervalMs: 50});
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => Number(assert.commandWorked(remove(second)).remaining.chunks) === 0, "chunks are not drained", 60 * 1000);
assert.commandWorked(admin.runCommand({movePrimary: "b", to: first}));
assert.soon(() => {
    reply = assert.commandWorked(remove(second));
    return reply.state === "completed";
}, () => tojson(reply), 60 * 1000);
assert.eq("removeshard completed successfully", reply.msg);
assert.eq(second, reply.shard);
point.off();
assert.commandWorked(admin.runCommand({balancerStop: 1}));

assert.eq([first], config.shards.find().toArray().map((s) => s._id));
assert.eq(2, st.s.getDB("a").c.find().itcount());
assert.eq(1, st.s.getDB("b").plain.find().itcount());
assert.commandFailedWithCode(remove(second), 70);
assert.commandFailedWithCode(remove(first), 20);
assert.eq(1, config.changelog.find({what: "removeShard.start", "details.shard": second}).itcount());
assert.eq(1, config.changelog.find({what: "removeShard", "details.shard": second}).itcount());
st.stop();
