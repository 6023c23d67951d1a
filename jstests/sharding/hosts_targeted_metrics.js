/**
 * Administrators see in numHostsTargeted whether the shard key suits their commands.
 * Fails when a command is not counted by its kind and by how many of the owning shards it went to, or is counted twice.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "hosts_targeted_metrics", {x: 1}, [{x: 0}], [first, second]);
const plain = coll.getDB().plain;
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
assert.commandWorked(plain.insert({x: 1}));

/** What `act` adds to the counts of `kind`: only one of them, and by one. */
function counted(kind, act) {
    const counts = () => assert.commandWorked(db.adminCommand({serverStatus: 1})).shardingStatistics.numHostsTargeted[kind];
    const before = counts();
    act();
    const after = counts();
    const risen = Object.keys(after).filter(name => Number(after[name]) != Number(before[name]));
    assert.eq(1, risen.length, () => `${kind} ${act}: ${tojson(before)} ${tojson(after)}`);
    assert.eq(1, Number(after[risen[0]]) - Number(before[risen[0]]));
    return risen[0];
}
assert.eq("oneShard", counted("find", () => coll.find({x: 1}).itcount()));
assert.eq("allShards", counted("find", () => coll.find({y: 1}).itcount()));
assert.eq("unsharded", counted("find", () => plain.find({x: 1}).itcount()));
assert.eq("oneShard", counted("aggregate", () => coll.aggregate([{$match: {x: 1}}]).itcount()));
assert.eq("allShards", counted("aggregate", () => coll.aggregate([{$group: {_id: "$y"}}]).itcount()));
assert.eq("unsharded", counted("aggregate", () => plain.aggregate([{$match: {x: 1}}]).itcount()));
assert.eq("oneShard", counted("insert", () => coll.insert({x: 5})));
assert.eq("allShards", counted("insert", () => coll.insert([{x: 6}, {x: -6}])));
assert.eq("allShards", counted("insert", () => coll.insert([{x: 7}, {x: -7}], {ordered: false})));
assert.eq("unsharded", counted("insert", () => plain.insert({x: 2})));
assert.eq("oneShard", counted("update", () => coll.updateOne({x: 5}, {$set: {y: 1}})));
assert.eq("allShards", counted("update", () => coll.updateMany({}, {$set: {y: 1}})));
assert.eq("unsharded", counted("update", () => plain.updateMany({}, {$set: {y: 1}})));
assert.eq("oneShard", counted("delete", () => coll.deleteOne({x: 5})));
assert.eq("allShards", counted("delete", () => coll.deleteMany({y: 9})));
assert.eq("unsharded", counted("delete", () => plain.deleteMany({})));

// An update that names its document by `_id` alone asks every shard for it.
const broadcasts = () => Number(assert.commandWorked(db.adminCommand({serverStatus: 1})).metrics.query.updateOneOpStyleBroadcastWithExactIDCount);
const before = broadcasts();
assert.eq("allShards", counted("update", () => coll.updateOne({_id: 0}, {$set: {y: 1}})));
assert.eq(1, broadcasts() - before);
assert.commandWorked(coll.update({x: 1, _id: 0}, {$set: {y: 1}}));
assert.eq(1, broadcasts() - before);
