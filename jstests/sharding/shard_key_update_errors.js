/**
 * Changing a document's shard key needs a retryable write of one document; everything else is refused, with its own code.
 * It fails if a multi-update may change keys, or a plain write changes one, leaving the document on the wrong shard.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "shard_key_update_errors", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
function update(statement) {
    return testDB.runCommand({update: "c", updates: [statement]});
}

// Many documents at once.
assert.commandFailedWithCode(update({q: {x: 1}, u: {$set: {x: 2}}, multi: true}), 72);
assert.commandFailedWithCode(update({q: {}, u: {$inc: {x: 1}}, multi: true}), 72);

// Without a transaction and without retryable writes.
assert.commandFailedWithCode(update({q: {x: 1}, u: {$set: {x: 2}}}), 20);
assert.commandFailedWithCode(update({q: {x: 1}, u: {x: 2}}), 20);
assert.commandFailedWithCode(update({q: {x: 1}, u: {$unset: {x: 1}}}), 20);
assert.commandFailedWithCode(update({q: {x: 1}, u: [{$set: {x: 5}}]}), 20);
assert.commandFailedWithCode(
    testDB.runCommand({findAndModify: "c", query: {x: 1}, update: {$set: {x: 2}}}), 20);
assert.eq([1, 1], [heldBy(coll, first), heldBy(coll, second)]);
assert.docEq([{_id: 1, x: -1}, {_id: 2, x: 1}], coll.find().sort({_id: 1}).toArray());

// The same value is no change, whatever its type.
assert.commandWorked(update({q: {x: 1}, u: {$set: {x: 1, v: 1}}}));
assert.commandWorked(update({q: {x: 1}, u: {$set: {x: NumberLong(1)}}}));
assert.commandWorked(update({q: {}, u: {$set: {w: 1}}, multi: true}));
assert.commandWorked(update({q: {x: 1}, u: {x: 1, w: 2}}));

// Within its shard a retryable write may change it.
const session = db.getMongo().startSession({retryWrites: true});
const inSession = session.getDatabase(testDB.getName()).c;
assert.eq(1, assert.commandWorked(inSession.updateOne({x: 1}, {$set: {x: 7}})).modifiedCount);
assert.eq(1, coll.find({x: 7}).itcount());
assert.eq(0, coll.find({x: 1}).itcount());
assert.eq([1, 1], [heldBy(coll, first), heldBy(coll, second)]);
const changed = inSession.findAndModify({query: {x: 7}, update: {$set: {x: 8}}, new: true});
assert.eq(8, changed.x);

// Never to a value that cannot be a key, and never the immutable _id.
assert.commandFailed(update({q: {x: 8}, u: {$set: {x: [1]}}}));
assert.commandFailedWithCode(update({q: {x: 8}, u: {$set: {_id: 77}}}), 66);
assert.commandFailed(testDB.runCommand({
    update: "c", updates: [{q: {x: 8}, u: {$set: {x: [1, 2]}}}], lsid: session.getSessionId(), txnNumber: NumberLong(900),
}));
session.endSession();
assert.eq([8], coll.find({_id: 2}).toArray().map((d) => d.x));

// No part of a key is an array, or below one; that is looked at first.
assert.commandWorked(coll.insert({_id: 50, x: -50}));
for (const u of [{$set: {x: [1]}}, {x: [{y: 1}]}, [{$set: {x: [1]}}]]) {
    assert.commandFailedWithCode(update({q: {x: -50}, u: u}), ErrorCodes.NotSingleValueField, tojson(u));
    const retryable = {update: "c", updates: [{q: {x: -50}, u: u}], lsid: {id: UUID()}, txnNumber: NumberLong(1)};
    assert.commandFailedWithCode(testDB.runCommand(retryable), ErrorCodes.NotSingleValueField, tojson(u));
}
assert.eq(1, coll.find({_id: 50, x: -50}).itcount());
assert.commandWorked(testDB.dropDatabase());
