/**
 * An index is on every shard of a collection, or on none: one that cannot be built on one shard is taken back on the others, also
 * after a restart in the middle. A tracked unsharded collection is handled alike.
 * It fails if a shard is left with an index that another has not, or loses one that it had before.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, mongos: 1, rs: {nodes: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const testDB = st.s.getDB("indexes");
assert.commandWorked(st.s.adminCommand({balancerStop: 1}));
assert.commandWorked(st.s.adminCommand({enableSharding: "indexes", primaryShard: first}));
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second}));
assert.commandWorked(coll.insert([{x: -1, u: 1}, {x: 1, u: 1}, {x: 1, u: 1}]));
const names = () => [st.shard0, st.shard1].map((s) => s.getDB("indexes").c.getIndexes().map((i) => i.name).sort());
const consistent = () => assert.eq([], testDB.runCommand({checkMetadataConsistency: 1, checkIndexes: true}).cursor.firstBatch);
const create = (key, options) =>
    testDB.runCommand({createIndexes: "c", indexes: [Object.assign({key: key, name: Object.keys(key).join("_")}, options)]});

// Two documents of the second shard are equal.
assert.commandWorked(create({v: 1}));
const before = names();
assert.commandFailedWithCode(create({x: 1, u: 1}, {unique: true}), 11000);
assert.eq(before, names());
consistent();
assert.commandFailedWithCode(create({u: 1}, {unique: true}), 67, "the shard key is no prefix");
// One that is there already is no reason to lose it.
assert.commandFailedWithCode(testDB.runCommand({
    createIndexes: "c",
    indexes: [{key: {v: 1}, name: "v"}, {key: {x: 1, u: 1}, name: "x_u", unique: true}],
}), 11000);
assert.eq(before, names());
const reply = assert.commandWorked(create({w: 1}));
assert.eq(2, Object.keys(reply.raw).length);
assert.eq(1, reply.numIndexesAfter - reply.numIndexesBefore);
assert.eq([[...before[0], "w"].sort(), [...before[1], "w"].sort()], names());

// All chunks on the other shard: the primary has the indexes as well.
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: MinKey}, max: {x: 0}, toShard: second}));
assert.commandWorked(create({z: 1}));
assert(names().every((n) => n.includes("z")));
assert.commandWorked(coll.dropIndex("z"));
assert(names().every((n) => !n.includes("z")));
consistent();

// A tracked unsharded collection away from its primary.
assert.commandWorked(testDB.alone.insert({_id: 1}));
assert.commandWorked(st.s.adminCommand({moveCollection: "indexes.alone", toShard: second}));
assert.commandWorked(testDB.alone.createIndex({a: 1}));
assert.commandWorked(testDB.runCommand({collMod: "alone", validationLevel: "moderate"}));
consistent();
assert.commandWorked(testDB.alone.dropIndex("a_1"));
consistent();

// The primary dies when one shard may have built it.
const point = configureFailPoint(st.shard0, "hangDdlCoordinatorBeforePersisting_allowMigrations");
const thread = inBackground(st.s.getDB("admin"), {ping: 1});
thread.returnData();
const building = new Thread(function(host) {
    return new Mongo(host).getDB("indexes").runCommand({createIndexes: "c", indexes: [{key: {late: 1}, name: "late"}]});
}, st.s.host);
building.start();
point.wait();
st.rs0.stopSet(9, true);
st.rs0.startSet({}, true);
building.join();
assert.soon(() => {
    try {
        return names().every((n) => n.includes("late"));
    } catch (e) {
        return false;
    }
});
assert.soon(() => {
    const entry = st.s.getDB("config").collections.findOne({_id: ns});
    return !("allowMigrations" in entry);
});
consistent();
st.stop();
