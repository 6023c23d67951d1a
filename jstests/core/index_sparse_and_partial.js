/**
 * Sparse and partial indexes leave documents out, so a query may use one only when it cannot miss those.
 * Fails when a query loses a document because of such an index, or the index holds documents that it should not.
 */
import {planIndexes} from "jstests/libs/plan_stages.js";

const coll = db.index_sparse_and_partial;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, s: 1, p: 1, status: "active"},
    {_id: 1, s: null, p: 5, status: "active"},
    {_id: 2, p: 20, status: "old"},
    {_id: 3, s: 4, status: "active"},
    {_id: 4, p: 30},
]));
assert.commandWorked(coll.createIndex({s: 1}, {sparse: true}));
assert.commandWorked(coll.createIndex({p: 1}, {partialFilterExpression: {status: "active"}}));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}
// A missing field is not in a sparse index, null is.
assert.eq([0, 1, 3], coll.find().hint({s: 1}).toArray().map(doc => doc._id).sort());
assert.eq([0, 1, 3], coll.find().hint({p: 1}).toArray().map(doc => doc._id).sort());

assert.eq([1, 2, 4], ids({s: null}));
assert.eq([2, 4], ids({s: {$exists: false}}));
assert.eq([0, 1, 2, 3, 4], coll.find().sort({s: 1}).toArray().map(doc => doc._id).sort());
assert.eq([2, 4], ids({p: {$gte: 10}}));
assert.eq([1], ids({p: {$gte: 5}, status: "active"}));

assert.eq(["s_1"], planIndexes(coll.find({s: {$gt: 0}}).explain()));
assert.eq([], planIndexes(coll.find({s: null}).explain()));
assert.eq([], planIndexes(coll.find({p: {$gte: 5}}).explain()));
assert.eq(["p_1"], planIndexes(coll.find({p: {$gte: 5}, status: "active"}).explain()));

// Documents enter and leave with their updates.
assert.commandWorked(coll.update({_id: 2}, {$set: {status: "active"}}));
assert.commandWorked(coll.update({_id: 0}, {$unset: {status: 1}}));
assert.eq([1, 2], ids({p: {$gte: 0}, status: "active"}));
assert.eq([1, 2, 3], coll.find().hint({p: 1}).toArray().map(doc => doc._id).sort());

function refused(codes, options) {
    assert.commandFailedWithCode(coll.createIndex({x: 1}, options), codes, () => tojson(options));
}
refused(ErrorCodes.CannotCreateIndex, {sparse: true, partialFilterExpression: {a: 1}});
refused(ErrorCodes.CannotCreateIndex, {partialFilterExpression: {a: {$ne: 1}}});
refused(ErrorCodes.CannotCreateIndex, {partialFilterExpression: {a: /x/}});
refused(ErrorCodes.CannotCreateIndex, {partialFilterExpression: {a: {$exists: false}}});
refused([ErrorCodes.BadValue, ErrorCodes.CannotCreateIndex], {partialFilterExpression: {a: {$bad: 1}}});
refused([ErrorCodes.TypeMismatch, ErrorCodes.CannotCreateIndex], {partialFilterExpression: 1});
assert.commandWorked(coll.createIndex({x: 1}, {partialFilterExpression: {$and: [{a: {$gte: 1}}, {b: {$exists: true}}, {c: {$type: "string"}}]}}));
