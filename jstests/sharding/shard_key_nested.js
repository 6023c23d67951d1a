/**
 * A shard key may be a field of an embedded document, named with a dot.
 * It fails if the router looks for a field with a dot in its name, or misses a filter given as a whole embedded document.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "shard_key_nested", {"a.b": 1, c: 1}, [{"a.b": 10, c: MinKey}], [first, second]);
const testDB = coll.getDB();
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert({_id: i, a: {b: i, z: 0}, c: i}));
}
assert.eq(10, heldBy(coll, first));
assert.eq(10, heldBy(coll, second));
assert.eq([first], shardsInPlan(coll.find({"a.b": 3}).explain()));
assert.eq([second], shardsInPlan(coll.find({"a.b": {$gte: 10}}).explain()));
assert.eq(1, coll.find({"a.b": 3, c: 3}).itcount());
assert.eq(1, coll.find({a: {b: 12, z: 0}}).itcount());

// An embedded document that is no document, or an array above the field.
assert.commandWorked(coll.insert({_id: "scalar", a: 5, c: 1}));
assert.eq(11, heldBy(coll, first), "what is not there counts as null");
assert.commandFailedWithCode(coll.insert({a: [{b: 1}], c: 1}), 61);
assert.commandFailedWithCode(coll.insert({a: {b: [1]}, c: 1}), 61);

// Updates by the key, and of other fields beside it.
let result = assert.commandWorked(coll.updateOne({"a.b": 12, c: 12}, {$set: {"a.z": 7}}));
assert.eq(1, result.modifiedCount);
assert.docEq({_id: 12, a: {b: 12, z: 7}, c: 12}, coll.findOne({_id: 12}));
result = assert.commandWorked(coll.deleteOne({"a.b": 3, c: 3}));
assert.eq(1, result.deletedCount);
result = assert.commandWorked(coll.updateOne({"a.b": 15, c: 15}, {$set: {v: 1}}, {upsert: true}));
assert.eq(1, result.matchedCount);
result = assert.commandWorked(coll.updateOne({"a.b": 150, c: 1}, {$set: {v: 1}}, {upsert: true}));
assert.docEq({_id: result.upsertedId, a: {b: 150}, c: 1, v: 1}, coll.findOne({_id: result.upsertedId}));
assert.commandWorked(testDB.dropDatabase());
