/**
 * A findAndModify that finds nothing leaves no trace, while an upsert makes collection and document.
 * Fails when a mere search creates a collection, or an upsert into a missing one fails.
 *
 * @tags: [
 *   # A passthrough creates what it shards.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.find_and_modify_creates_nothing;
const name = coll.getName();
function exists() {
    return db.getCollectionInfos({name: name}).length == 1;
}
coll.drop();
assert.eq(null, coll.findAndModify({query: {_id: 1}, update: {$set: {a: 1}}}));
assert.eq(false, exists());
assert.eq(null, coll.findAndModify({query: {_id: 1}, remove: true}));
assert.eq(false, exists());

let reply = assert.commandWorked(db.runCommand({findAndModify: name, query: {}, sort: {a: 1}, remove: true}));
assert.eq({n: 0}, reply.lastErrorObject);
assert.eq(null, reply.value);
assert.eq(false, exists());

reply = assert.commandWorked(db.runCommand({findAndModify: name, query: {a: 5}, update: {$inc: {b: 1}}, upsert: true, new: true}));
assert.eq(false, reply.lastErrorObject.updatedExisting);
assert.eq(1, reply.lastErrorObject.n);
assert.eq(reply.value._id, reply.lastErrorObject.upserted);
assert.eq([5, 1], [reply.value.a, reply.value.b]);
assert.eq(true, exists());
assert.eq([reply.value], coll.find().toArray());

// The same command once more finds it.
reply = assert.commandWorked(db.runCommand({findAndModify: name, query: {a: 5}, update: {$inc: {b: 1}}, upsert: true}));
assert.eq({n: 1, updatedExisting: true}, reply.lastErrorObject);
assert.eq(2, coll.findOne().b);
