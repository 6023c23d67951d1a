/**
 * Writes that end when their time is over leave a partial index with the keys of all documents that its filter passes, and no other.
 * Its filter takes most of the time, so that time often ends there.
 */
const coll = db.partial_index_out_of_time;
coll.drop();
const last = 1500;
assert.commandWorked(coll.createIndex({x: 1}, {partialFilterExpression: {a: {$gt: last}}}));
const a = [];
for (let i = 0; i <= last + 1; i++) a.push(i);
for (let round = 0; round < 4; round++) {
    const docs = [];
    for (let i = 0; i < 300; i++) docs.push({_id: round * 1000 + i, x: i, a});
    assert.commandWorked(coll.insert(docs));
    for (const maxTimeMS of [2, 5, 10, 20]) {
        coll.runCommand({update: coll.getName(), updates: [{q: {}, u: {$inc: {x: 1}}, multi: true}], maxTimeMS});
        coll.runCommand({delete: coll.getName(), deletes: [{q: {x: {$lt: 50 * round + maxTimeMS}}, limit: 0}], maxTimeMS});
    }
    const found = assert.commandWorked(coll.validate());
    assert(found.valid, tojson(found.errors));
    assert.eq(coll.find({}).hint({$natural: 1}).itcount(), coll.find({x: {$gte: 0}, a: {$gt: last}}).hint({x: 1}).itcount());
}
