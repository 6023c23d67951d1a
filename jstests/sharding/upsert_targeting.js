/**
 * An upsert inserts on the shard that owns the new document's key, and says where and what it inserted.
 * It fails if the document is made on the shard that was asked first, or two concurrent statements share one _id.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "upsert_targeting", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
function update(updates, more) {
    return assert.commandWorked(testDB.runCommand(Object.assign({update: "c", updates: updates}, more)));
}

let reply = update([{q: {x: 5}, u: {$set: {v: 1}}, upsert: true}]);
assert.eq(1, reply.n);
assert.eq(0, reply.nModified);
assert.eq(1, reply.upserted.length);
assert.eq(0, reply.upserted[0].index);
assert.docEq({_id: reply.upserted[0]._id, x: 5, v: 1}, coll.findOne({x: 5}));
assert.eq([0, 1], [heldBy(coll, first), heldBy(coll, second)]);

// Several in one request: each has its index, what is found is only updated.
reply = update([
    {q: {x: -1, _id: "a"}, u: {$set: {v: 1}}, upsert: true},
    {q: {x: 5}, u: {$set: {v: 2}}, upsert: true},
    {q: {x: 1, _id: "b"}, u: {x: 1, whole: true}, upsert: true},
    {q: {x: -2}, u: {$set: {v: 0}}, upsert: false},
]);
assert.eq(3, reply.n);
assert.eq(1, reply.nModified);
assert.eq([{index: 0, _id: "a"}, {index: 2, _id: "b"}], reply.upserted);
assert.docEq({_id: "b", x: 1, whole: true}, coll.findOne({_id: "b"}));
assert.eq([1, 2], [heldBy(coll, first), heldBy(coll, second)]);

// The key comes from the filter's equality, also inside $and; $setOnInsert fills in.
update([{q: {$and: [{x: -7}, {y: 3}]}, u: {$setOnInsert: {made: true}}, upsert: true}]);
const made = coll.findOne({x: -7});
assert.eq(3, made.y);
assert(made.made);
assert.eq(2, heldBy(coll, first));

// A replacement whose key differs from the filter's is no upsert of the filter's key.
assert.commandFailedWithCode(
    testDB.runCommand({update: "c", updates: [{q: {x: 900}, u: {x: -900}, upsert: true}]}), 20);

// findAndModify upserts too.
const modified = assert.commandWorked(testDB.runCommand(
    {findAndModify: "c", query: {x: -50}, update: {$set: {f: 1}}, upsert: true, new: true}));
assert.eq(-50, modified.value.x);
assert.eq(false, modified.lastErrorObject.updatedExisting);
assert.eq(1, modified.lastErrorObject.n);
assert.eq(modified.value._id, modified.lastErrorObject.upserted);
assert.eq(3, heldBy(coll, first));

// Many at once for the same new key: one document.
const threads = [];
for (let i = 0; i < 4; i++) {
    threads.push(new Thread(function(host, name) {
        const c = new Mongo(host).getDB(name).hot;
        for (let n = 0; n < 25; n++) {
            const done = c.update({_id: n}, {$inc: {v: 1}}, {upsert: true});
            // Two that insert at the same moment: one of them may be told of the other's document.
            if (done.hasWriteError() && done.getWriteError().code === 11000) {
                n--;
            } else if (done.hasWriteError()) {
                throw new Error(tojson(done));
            }
        }
    }, db.getMongo().host, testDB.getName()));
}
shardByRanges(testDB.hot, {_id: 1}, [{_id: 12}], [first, second]);
threads.forEach((t) => t.start());
threads.forEach((t) => t.join());
assert.eq(25, testDB.hot.find().itcount());
assert.eq(25, testDB.hot.find({v: 4}).itcount());
assert.commandWorked(testDB.dropDatabase());
