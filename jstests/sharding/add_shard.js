/**
 * A set is taken into the cluster under a name, with what it holds; what cannot be a shard is refused before it changes.
 * It fails if a set is taken in twice, a database comes in double, or a refused set believes that it is a shard.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 1});
const first = st.shard0.shardName;
const admin = st.s.getDB("admin");
const add = (connection, more) => admin.runCommand(Object.assign({addShard: connection}, more));
const shards = () => st.s.getDB("config").shards.find().sort({_id: 1}).toArray().map((s) => s._id);

function set(name, filled) {
    const rs = new ReplSetTest({name: name, nodes: 1, nodeOptions: {shardsvr: ""}});
    rs.startSet();
    rs.initiate();
    if (filled) {
        assert.commandWorked(rs.getPrimary().getDB(filled).c.insert({_id: name}));
    }
    return rs;
}

// With its data, under the set's name. What it knows of sessions is of no cluster, unless it comes from this one.
const brought = set("brought", "heirloom");
const sessions = brought.getPrimary().getDB("config").system.sessions;
assert.commandWorked(sessions.insert({_id: {id: UUID()}, lastUse: new Date()}));
// Cluster parameters are the cluster's, whatever was set here.
const limit = (conn) => assert.commandWorked(conn.adminCommand({getClusterParameter: "defaultMaxTimeMS"})).clusterParameters[0];
const several = (conn) =>
    assert.commandWorked(conn.adminCommand({getClusterParameter: "shardedClusterCardinalityForDirectConns"})).clusterParameters[0];
assert.commandWorked(admin.runCommand({setClusterParameter: {defaultMaxTimeMS: {readOperations: 60000}}}));
const own = brought.getPrimary().getDB("config").clusterParameters;
assert.commandWorked(own.insert({_id: "defaultMaxTimeMS", readOperations: NumberLong(1)}));
assert.commandWorked(own.insert({_id: "pauseMigrationsDuringMultiUpdates", enabled: true}));
assert.eq(false, several(st.s).hasTwoOrMoreShards);
let reply = assert.commandWorked(add(brought.getURL()));
assert.eq(60000, limit(brought.getPrimary()).readOperations);
assert.eq(limit(st.s), limit(brought.getPrimary()));
assert.eq(0, own.find({_id: "pauseMigrationsDuringMultiUpdates"}).itcount());
for (const conn of [st.s, st.rs0.getPrimary(), brought.getPrimary()]) {
    assert.eq(true, several(conn).hasTwoOrMoreShards);
}
assert.eq(0, sessions.find().itcount());
assert.eq("brought", reply.shardAdded);
assert.contains("brought", shards());
assert.eq("brought", st.s.getDB("config").databases.findOne({_id: "heirloom"}).primary);
assert.eq(["brought"], st.s.getDB("heirloom").c.find().toArray().map((d) => d._id));
const identity = brought.getPrimary().getDB("admin").getCollection("system.version").findOne({_id: "shardIdentity"});
assert.eq("brought", identity.shardName);
assert.eq(st.s.getDB("config").getCollection("version").findOne().clusterId, identity.clusterId);
assert.eq(true, brought.getPrimary().adminCommand({shardingState: 1}).enabled);

// Again: the same answer. Under another name: no.
reply = assert.commandWorked(add(brought.getURL()));
assert.eq("brought", reply.shardAdded);
assert.commandFailedWithCode(add(brought.getURL(), {name: "renamed"}), 20);

// Under a name of choice, in the old spelling.
const named = set("named");
assert.commandWorked(admin.runCommand({addshard: named.getURL(), name: "chosen"}));
assert.contains("chosen", shards());
assert.commandWorked(admin.runCommand({enableSharding: "there", primaryShard: "chosen"}));
assert.commandWorked(st.s.getDB("there").c.insert({_id: 1}));
assert.eq(1, named.getPrimary().getDB("there").c.find().itcount());

// A database that exists already.
assert.commandWorked(st.s.getDB("twice").c.insert({_id: 1}));
const conflicting = set("conflicting", "twice");
assert.commandFailedWithCode(add(conflicting.getURL()), 96);
assert(!shards().includes("conflicting"));
assert.commandWorked(conflicting.getPrimary().getDB("twice").dropDatabase());

// The most that the balancer may bring to it, in mebibytes.
for (const maxSize of [-1, "much"]) {
    assert.commandFailedWithCode(add(conflicting.getURL(), {maxSize: maxSize}), 2);
}
assert(!shards().includes("conflicting"));

// Names.
assert.commandFailedWithCode(add(conflicting.getURL(), {name: "config"}), 2);
assert.commandFailedWithCode(add(conflicting.getURL(), {name: ""}), 2);
assert.commandFailedWithCode(add(conflicting.getURL(), {name: first}), 20);
const host = conflicting.getURL().split("/")[1];
assert.commandFailedWithCode(add(host), 96);
assert.commandFailedWithCode(add("othername/" + host), 96);
assert.commandFailedWithCode(add(st.configRS.getURL()), [20, 96]);
assert.commandFailed(add(st.s.host));
assert.commandFailed(add(""));
assert.commandFailedWithCode(admin.runCommand({addShard: 5}), 14);
assert.commandFailedWithCode(st.s.getDB("test").runCommand({addShard: conflicting.getURL()}), 13);
assert.commandWorked(add(conflicting.getURL(), {maxSize: 100}));
assert.eq(100, st.s.getDB("config").shards.findOne({_id: "conflicting"}).maxSize);
assert.eq(4, shards().length);
assert.eq(4, assert.commandWorked(admin.runCommand({listShards: 1})).shards.length);

// New shards take part at once.
assert.commandWorked(admin.runCommand({shardCollection: "spread.c", key: {_id: "hashed"}}));
const uuid = st.s.getDB("config").collections.findOne({_id: "spread.c"}).uuid;
assert.eq(4, new Set(st.s.getDB("config").chunks.find({uuid: uuid}).toArray().map((c) => c.shard)).size);

// The log knows.
assert.gte(st.s.getDB("config").changelog.find({what: "addShard", "details.name": "chosen"}).itcount(), 1);
st.stop();
[brought, named, conflicting].forEach((rs) => rs.stopSet());
