/**
 * Writes that come to a shard past its routers touch what the shard merely holds, so that tests can plant orphans and
 * take them away; the same write through a router passes them over.
 * Fails when an unversioned delete skips a document because the shard does not own it, or a routed one takes it.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "orphans_past_the_router", {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
const direct = shardConnection(db, first).getCollection(coll.getFullName());

assert.commandWorked(direct.insert({_id: 3, x: 5}));
assert.eq(2, coll.find().itcount(), "the orphan is not seen");
assert.eq(2, direct.find().itcount());
assert.eq(0, assert.commandWorked(coll.update({_id: 3}, {$set: {seen: true}}, {multi: true})).nModified);
assert.eq(0, coll.deleteMany({_id: 3}).deletedCount);
assert.commandWorked(direct.update({_id: 3}, {$set: {seen: true}}));
assert.eq(true, direct.findOne({_id: 3}).seen);
assert.eq(1, direct.deleteMany({_id: 3}).deletedCount);
assert.eq(1, direct.find().itcount());
assert.eq(2, coll.find().itcount());
