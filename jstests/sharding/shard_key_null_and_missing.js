/**
 * A document without the shard key, or with a part of it, has its place: what is missing counts as null.
 * It fails if such documents are refused, placed elsewhere, or not found by a filter for null.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
// Null sorts below numbers, so what is missing lies on the first shard.
const coll = freshCollection(db, "shard_key_null_and_missing", {a: 1, b: 1}, [{a: 0, b: MinKey}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([
    {_id: "none"},
    {_id: "null", a: null, b: null},
    {_id: "only b", b: 5},
    {_id: "only a", a: 5},
    {_id: "undefined-free", a: 1, b: null},
    {_id: "both", a: 1, b: 1},
]));
assert.eq(3, heldBy(coll, first));
assert.eq(3, heldBy(coll, second));

const ids = (filter) => coll.find(filter).sort({_id: 1}).toArray().map((d) => d._id);
assert.eq(["none", "null", "only b"], ids({a: null}));
assert.eq(["none", "null"], ids({a: null, b: null}));
assert.eq(["only a"], ids({a: 5, b: null}));
assert.eq(["none", "only b"], ids({a: {$exists: false}}));
assert.eq([first], shardsInPlan(coll.find({a: null}).explain()));
assert.eq([second], shardsInPlan(coll.find({a: 5, b: null}).explain()));

// Writes that name the key with null reach the documents without it.
assert.eq(1, assert.commandWorked(coll.updateOne({_id: "none", a: null, b: null}, {$set: {v: 1}})).modifiedCount);
assert.eq(1, assert.commandWorked(coll.deleteOne({_id: "only a", a: 5, b: null})).deletedCount);

// A replacement without the key keeps the document where it is: missing is still null.
assert.commandWorked(coll.replaceOne({_id: "none", a: null, b: null}, {w: 2}));
assert.docEq({_id: "none", w: 2}, coll.findOne({_id: "none"}));

// The key may be given where it was missing, by a retryable write that leaves the document on its shard.
const session = db.getMongo().startSession({retryWrites: true});
const inSession = session.getDatabase(testDB.getName()).c;
assert.commandWorked(inSession.updateOne({_id: "none", a: null, b: null}, {$set: {a: null}}));
assert.docEq({_id: "none", w: 2, a: null}, coll.findOne({_id: "none"}));
session.endSession();

// A value that is an array has no place.
assert.commandFailedWithCode(coll.insert({a: [1, 2], b: 1}), 61);
assert.commandFailedWithCode(coll.insert({a: 1, b: []}), 61);
assert.commandWorked(testDB.dropDatabase());
