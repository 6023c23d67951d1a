/**
 * The shards' own counters say which of them took part in a command: targeted commands leave the others alone.
 * It fails if the router sends a command with a full shard key to every shard, or leaves out an owner in a broadcast.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames, shardsWhere} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "targeting_counters", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{x: -2, v: 1}, {x: -1, v: 2}, {x: 1, v: 3}, {x: 2, v: 4}]));
coll.find().itcount();

const total = (name) => (status) => status.metrics.commands[name] ? status.metrics.commands[name].total : 0;
function ran(command, on, act) {
    assert.eq(on.slice().sort(), shardsWhere(db, total(command), act), `${command}: ${act}`);
}
const both = [first, second];

ran("find", [first], () => coll.find({x: -1}).itcount());
ran("find", [second], () => coll.find({x: {$gt: 0}}).itcount());
ran("find", both, () => coll.find({v: 3}).itcount());
ran("count", [second], () => coll.count({x: 1}));
ran("count", both, () => coll.count({v: 1}));
ran("distinct", [first], () => coll.distinct("v", {x: -1}));
ran("distinct", both, () => coll.distinct("v"));
ran("aggregate", [second], () => coll.aggregate([{$match: {x: 2}}, {$group: {_id: null, s: {$sum: "$v"}}}]).toArray());
ran("aggregate", both, () => coll.aggregate([{$group: {_id: null, s: {$sum: "$v"}}}]).toArray());
ran("insert", [first], () => assert.commandWorked(coll.insert({x: -7})));
ran("insert", [second], () => assert.commandWorked(coll.insert([{x: 7}, {x: 8}])));
ran("insert", both, () => assert.commandWorked(coll.insert([{x: 9}, {x: -9}])));
ran("update", [first], () => assert.commandWorked(coll.update({x: -7}, {$set: {v: 9}})));
ran("update", both, () => assert.commandWorked(coll.update({v: 9}, {$set: {w: 1}}, {multi: true})));
ran("delete", [second], () => assert.commandWorked(coll.remove({x: 7})));
ran("delete", both, () => assert.commandWorked(coll.remove({w: 12345})));
ran("findAndModify", [second], () => coll.findAndModify({query: {x: 8}, update: {$inc: {v: 1}}}));
assert.commandWorked(testDB.dropDatabase());
