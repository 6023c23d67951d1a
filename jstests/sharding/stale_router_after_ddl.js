/**
 * What a router knows of a collection may be gone: dropped, made anew, sharded by another key, renamed, or never sharded.
 * It fails if a collection of the same name is taken for the old one, or a router must be told to forget.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const fresh = st.s0;
const stale = st.s1;
const dbName = "ddl";
assert.commandWorked(fresh.adminCommand({enableSharding: dbName, primaryShard: first}));
const here = fresh.getDB(dbName);
const there = stale.getDB(dbName);
function shard(name, key, point) {
    assert.commandWorked(fresh.adminCommand({shardCollection: `${dbName}.${name}`, key: key}));
    assert.commandWorked(fresh.adminCommand({split: `${dbName}.${name}`, middle: point}));
    assert.commandWorked(fresh.adminCommand(
        {moveRange: `${dbName}.${name}`, min: point, max: {[Object.keys(point)[0]]: MaxKey}, toShard: second}));
}

// Sharded behind the router's back.
assert.commandWorked(there.a.insert([{_id: 1, x: 1}, {_id: 2, x: -1}]));
assert.commandWorked(here.a.createIndex({x: 1}));
shard("a", {x: 1}, {x: 0});
assert.eq(2, there.a.find().itcount());
assert.commandWorked(there.a.insert({_id: 3, x: 5}));
assert.eq(1, st.shard1.getDB(dbName).a.find({_id: 3}).itcount());
assert.eq(1, there.a.find({x: 5}).itcount());

// Dropped, and made anew without being sharded.
assert(here.a.drop());
assert.eq(0, there.a.find().itcount());
assert.commandWorked(here.a.insert({_id: 10, y: 1}));
assert.eq(1, there.a.find().itcount());
assert.commandWorked(there.a.insert({_id: 11, x: 100}));
assert.eq(2, st.shard0.getDB(dbName).a.find().itcount());

// Dropped and sharded again, by another key.
shard("b", {x: 1}, {x: 0});
assert.commandWorked(there.b.insert([{_id: 1, x: 1}, {_id: 2, x: -1}]));
assert(here.b.drop());
shard("b", {y: 1}, {y: 100});
assert.commandWorked(there.b.insert([{_id: 1, x: 1, y: 150}, {_id: 2, x: -1, y: 5}]));
assert.eq(1, st.shard1.getDB(dbName).b.find({y: 150}).itcount());
assert.eq(1, st.shard0.getDB(dbName).b.find({y: 5}).itcount());
assert.eq(1, there.b.find({y: 150}).itcount());
assert.eq(1, there.b.find({x: -1}).itcount());

// Dropped and sharded again by the same key: other owners, another generation.
shard("c", {x: 1}, {x: 0});
assert.commandWorked(there.c.insert({_id: 1, x: 1}));
assert(here.c.drop());
shard("c", {x: 1}, {x: 50});
assert.eq(0, there.c.find().itcount());
assert.commandWorked(there.c.insert([{_id: 1, x: 1}, {_id: 2, x: 51}]));
assert.eq(1, st.shard0.getDB(dbName).c.find({x: 1}).itcount());
assert.eq(1, st.shard1.getDB(dbName).c.find({x: 51}).itcount());

// Renamed.
assert.commandWorked(here.c.renameCollection("d"));
assert.eq(0, there.c.find().itcount());
assert.eq(2, there.d.find().itcount());
assert.eq(1, assert.commandWorked(there.d.updateOne({x: 51}, {$set: {v: 1}})).modifiedCount);
assert.commandWorked(there.c.insert({_id: 1, anything: true}));
assert.eq(1, here.c.find().itcount());

// The database dropped and made anew on the other shard.
assert.commandWorked(here.dropDatabase());
assert.commandWorked(fresh.adminCommand({enableSharding: dbName, primaryShard: second}));
assert.commandWorked(here.c.insert({_id: "new"}));
assert.eq(["new"], there.c.find().toArray().map((d) => d._id));
assert.eq(0, there.d.find().itcount());
assert.commandWorked(there.e.insert({_id: 1}));
assert.eq(1, st.shard1.getDB(dbName).e.find().itcount());
// Its database has gone.
for (const change of [{collMod: "g", validationLevel: "moderate"}, {dropIndexes: "g", index: "y"}]) {
    shard("g", {x: 1}, {x: 0});
    assert.eq(0, there.g.find().itcount());
    assert.commandWorked(here.dropDatabase());
    assert.commandFailedWithCode(there.runCommand(change), ErrorCodes.NamespaceNotFound, tojson(change));
    assert.commandWorked(fresh.adminCommand({enableSharding: dbName, primaryShard: first}));
}
shard("g", {x: 1}, {x: 0});
assert.eq(0, there.g.find().itcount());
assert.commandWorked(here.dropDatabase());
assert.commandWorked(there.runCommand({createIndexes: "g", indexes: [{key: {y: 1}, name: "y"}]}));
assert.eq(2, here.g.getIndexes().length);
st.stop();
