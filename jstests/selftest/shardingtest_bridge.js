/**
 * With useBridge every node of a cluster stands behind a proxy, routers included, so that a test may take a shard or the config server from a router.
 * It fails if a router reaches a shard that rejects it, or if the other shard is lost with it.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({ shards: 2, mongos: 2, config: 1, useBridge: true });
const [near, far] = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.s.adminCommand({ enableSharding: "here", primaryShard: near }));
assert.commandWorked(st.s.adminCommand({ enableSharding: "there", primaryShard: far }));
for (const name of ["here", "there"]) assert.commandWorked(st.s.getDB(name).c.insert({ _id: 1 }));
for (const name of ["here", "there"]) assert.eq(1, st.s1.getDB(name).c.find().itcount());

const find = (router, name) => router.getDB(name).runCommand({ find: "c", maxTimeMS: 3000 });
const primary = st.rs1.getPrimary();
primary.rejectConnectionsFrom(st.s0);
assert.commandFailed(find(st.s0, "there"));
assert.commandWorked(find(st.s0, "here"));
assert.commandWorked(find(st.s1, "there"), "the other router may");
primary.acceptConnectionsFrom(st.s0);
assert.soon(() => find(st.s0, "there").ok, "the router does not find the shard again");

// Migrations need both shards to reach one another.
assert.commandWorked(st.s.adminCommand({ shardCollection: "here.c", key: { _id: 1 } }));
primary.disconnect(st.rs0.getPrimary());
assert.commandFailed(st.s.adminCommand({ moveChunk: "here.c", find: { _id: 1 }, to: far, maxTimeMS: 5000 }));
primary.reconnect(st.rs0.getPrimary());
assert.soon(() => st.s.adminCommand({ moveChunk: "here.c", find: { _id: 1 }, to: far }).ok);

const before = st.s1.port;
st.restartMongos(1);
assert.eq([before, 1], [st.s1.port, find(st.s1, "here").cursor.firstBatch.length]);
primary.rejectConnectionsFrom(st.s1);
assert.commandFailed(find(st.s1, "here"));
primary.acceptConnectionsFrom(st.s1);
st.stop();
