/**
 * findAndModify reads and writes one document in one step, and its reply tells drivers what happened.
 * Fails when the wrong version of the document comes back, lastErrorObject is wrong, or the sort does not choose the document.
 */
const coll = db.find_and_modify;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, v: 10}, {_id: 2, v: 20}, {_id: 3, v: 30}]));
const name = coll.getName();

function run(options) {
    return assert.commandWorked(db.runCommand(Object.assign({findAndModify: name}, options)));
}

let reply = run({query: {_id: 1}, update: {$inc: {v: 1}}});
assert.eq({_id: 1, v: 10}, reply.value);
assert.eq({n: 1, updatedExisting: true}, reply.lastErrorObject);

reply = run({query: {_id: 1}, update: {$inc: {v: 1}}, new: true});
assert.eq({_id: 1, v: 12}, reply.value);

reply = run({query: {v: {$gt: 0}}, sort: {v: -1}, update: {$set: {top: true}}, new: true, fields: {top: 1}});
assert.eq({_id: 3, top: true}, reply.value);

reply = run({query: {_id: 77}, update: {$set: {v: 1}}});
assert.eq(null, reply.value);
assert.eq({n: 0, updatedExisting: false}, reply.lastErrorObject);

reply = run({query: {_id: 4}, update: {$set: {v: 40}}, upsert: true});
assert.eq(null, reply.value);
assert.eq({n: 1, updatedExisting: false, upserted: 4}, reply.lastErrorObject);

reply = run({query: {_id: 5}, update: {v: 50}, upsert: true, new: true});
assert.eq({_id: 5, v: 50}, reply.value);

reply = run({query: {_id: 5}, remove: true, fields: {_id: 0}});
assert.eq({v: 50}, reply.value);
assert.eq({n: 1}, reply.lastErrorObject);
reply = run({query: {_id: 5}, remove: true});
assert.eq(null, reply.value);
assert.eq({n: 0}, reply.lastErrorObject);

reply = run({query: {_id: 2}, update: [{$set: {v: {$add: ["$v", 5]}}}], new: true});
assert.eq({_id: 2, v: 25}, reply.value);
reply = run({query: {_id: 2}, update: {a: [1, 2, 3]}, new: true});
assert.eq({_id: 2, a: [1, 2, 3]}, reply.value);
reply = run({query: {_id: 2}, update: {$set: {"a.$[e]": 0}}, arrayFilters: [{e: {$gt: 1}}], new: true});
assert.eq({_id: 2, a: [1, 0, 0]}, reply.value);

// The shell's helpers over it.
assert.eq({_id: 2, a: [1, 0, 0]}, coll.findOneAndUpdate({_id: 2}, {$unset: {a: 1}}));
assert.eq({_id: 2, b: 1}, coll.findOneAndReplace({_id: 2}, {b: 1}, {returnNewDocument: true}));
assert.eq({_id: 2, b: 1}, coll.findOneAndDelete({_id: 2}));
assert.eq(3, coll.find().itcount());
