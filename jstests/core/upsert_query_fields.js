/**
 * An upsert makes its document from the equalities of the query and then applies the update.
 * Fails when a range, an $or or an operator value slips into the document, an equality is left out, or an upsert may not insert a name with a dollar sign.
 */
const coll = db.upsert_query_fields;

function upserted(query, update) {
    coll.drop();
    const result = assert.commandWorked(coll.update(query, update, {upsert: true}));
    assert.eq(1, result.nUpserted);
    assert.eq(0, result.nMatched);
    assert.eq(result.getUpsertedId()._id, coll.findOne()._id);
    const doc = coll.findOne();
    delete doc._id;
    return doc;
}

assert.eq({a: 1, b: 2}, upserted({a: 1}, {$set: {b: 2}}));
assert.eq({a: 1, b: 2}, upserted({a: {$eq: 1}}, {$set: {b: 2}}));
assert.eq({b: 2}, upserted({a: {$gt: 1}}, {$set: {b: 2}}));
assert.eq({a: {x: 5}, b: 2}, upserted({"a.x": 5}, {$set: {b: 2}}));
assert.eq({a: 1, c: 3, b: 2}, upserted({$and: [{a: 1}, {c: 3}]}, {$set: {b: 2}}));
assert.eq({a: 1, b: 2}, upserted({$or: [{a: 1}]}, {$set: {b: 2}}));
assert.eq({b: 2}, upserted({$or: [{a: 1}, {a: 2}]}, {$set: {b: 2}}));
assert.eq({b: 2}, upserted({$nor: [{a: 1}]}, {$set: {b: 2}}));
assert.eq({a: 1, b: 2}, upserted({a: {$in: [1]}}, {$set: {b: 2}}));
assert.eq({b: 2}, upserted({a: {$in: [1, 2]}}, {$set: {b: 2}}));
assert.eq({a: [1], b: 2}, upserted({a: {$all: [[1]]}}, {$set: {b: 2}}));
assert.eq({b: 2}, upserted({a: /x/}, {$set: {b: 2}}));
assert.eq({a: 6}, upserted({a: 5}, {$inc: {a: 1}}));
assert.eq({a: null, b: 2}, upserted({a: null}, {$set: {b: 2}}));

// A name that begins with a dollar sign may be inserted, and not be set in a document that exists.
assert.eq({a: 1, $hotel: 3}, upserted({a: 1}, {$set: {$hotel: 3}}));
assert.commandFailedWithCode(coll.update({a: 1}, {$set: {$hotel: 4}}, {upsert: true}), ErrorCodes.DollarPrefixedFieldName);
assert.eq(0, assert.commandWorked(coll.update({a: 7}, {$set: {$hotel: 4}})).nMatched);

// Without an _id in the query the server makes an ObjectId.
coll.drop();
const made = assert.commandWorked(coll.update({a: 1}, {$set: {b: 1}}, {upsert: true}));
assert(made.getUpsertedId()._id instanceof ObjectId);
assert.commandWorked(coll.update({_id: "named", a: {$lt: 0}}, {$set: {b: 1}}, {upsert: true}));
assert.eq({_id: "named", b: 1}, coll.findOne({_id: "named"}));

// The reply lists each upserted document with the index of its statement.
const reply = assert.commandWorked(db.runCommand({
    update: coll.getName(),
    updates: [{q: {_id: 50}, u: {$set: {x: 1}}, upsert: true}, {q: {_id: 50}, u: {$set: {x: 2}}, upsert: true}, {q: {_id: 51}, u: {}, upsert: true}]
}));
assert.eq([{index: 0, _id: 50}, {index: 2, _id: 51}], reply.upserted);
assert.eq([3, 1], [reply.n, reply.nModified]);

// Two different values for one field are no document, nor is a query without one for a multi replacement.
assert.commandFailedWithCode(coll.update({$and: [{q: 1}, {q: 2}]}, {$set: {b: 1}}, {upsert: true}), ErrorCodes.NotSingleValueField);
assert.commandFailedWithCode(coll.update({q: 1, "q.r": 2}, {$set: {b: 1}}, {upsert: true}), ErrorCodes.NotSingleValueField);
