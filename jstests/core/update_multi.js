/**
 * multi decides between the first match and all of them, and the counts of the reply say which documents were touched.
 * Fails when a single update touches a second document, a multi update misses one, or n and nModified are counted wrongly.
 */
const coll = db.update_multi;

function reset() {
    coll.drop();
    assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i, g: i % 2, v: i}))));
}

reset();
let reply = assert.commandWorked(db.runCommand({update: coll.getName(), updates: [{q: {g: 0}, u: {$set: {v: 0}}, multi: true}]}));
assert.eq(5, reply.n);
assert.eq(4, reply.nModified);
assert.eq(5, coll.find({v: 0}).itcount());

reset();
reply = assert.commandWorked(db.runCommand({update: coll.getName(), updates: [{q: {g: 1}, u: {$set: {w: 1}}}]}));
assert.eq([1, 1], [reply.n, reply.nModified]);
assert.eq(1, coll.find({w: 1}).itcount());

// A document that moves forward within the index of the query is updated once.
reset();
assert.commandWorked(coll.createIndex({v: 1}));
reply = assert.commandWorked(db.runCommand({update: coll.getName(), updates: [{q: {v: {$gte: 0}}, u: {$inc: {v: 3}}, multi: true, hint: {v: 1}}]}));
assert.eq([10, 10], [reply.n, reply.nModified]);
assert.eq([3, 4, 5, 6, 7, 8, 9, 10, 11, 12], coll.find().sort({v: 1}).toArray().map(doc => doc.v));

// Several statements in one command see each other's results; counts are sums.
reset();
reply = assert.commandWorked(db.runCommand({
    update: coll.getName(),
    updates: [
        {q: {v: {$lt: 3}}, u: {$set: {v: 100}}, multi: true},
        {q: {v: 100}, u: {$inc: {v: 1}}, multi: true},
        {q: {v: 7777}, u: {$set: {x: 1}}},
    ]
}));
assert.eq([6, 6], [reply.n, reply.nModified]);
assert.eq(3, coll.find({v: 101}).itcount());

// What one document refuses stops the statement there.
reset();
assert.commandWorked(coll.update({_id: 9}, {$set: {v: "text"}}));
assert.commandFailedWithCode(coll.update({}, {$inc: {v: 1}}, {multi: true}), ErrorCodes.TypeMismatch);
assert.eq("text", coll.findOne({_id: 9}).v);
assert.commandFailedWithCode(db.runCommand({update: coll.getName(), updates: []}), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(db.runCommand({update: coll.getName(), updates: [{q: {}}]}), 40414);
assert.commandFailedWithCode(db.runCommand({update: coll.getName(), updates: [{u: {}}]}), 40414);
