/**
 * The positional $ operator updates the array element that met the query.
 * Fails when another element is updated, or an update without a matched element is taken.
 */
const coll = db.update_positional;

function updated(before, filter, update) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    assert.commandWorked(coll.update(Object.assign({_id: 1}, filter), update));
    const doc = coll.findOne();
    delete doc._id;
    return doc;
}

assert.eq({a: [1, 9, 3, 2]}, updated({a: [1, 2, 3, 2]}, {a: 2}, {$set: {"a.$": 9}}));
assert.eq({a: [1, 5, 3]}, updated({a: [1, 2, 3]}, {a: {$gt: 1}}, {$inc: {"a.$": 3}}));
assert.eq({a: [{k: 1}, {k: 2, n: 8}]}, updated({a: [{k: 1}, {k: 2, n: 7}]}, {"a.k": 2}, {$inc: {"a.$.n": 1}}));
assert.eq({a: [{k: 2, v: 1}, {k: 2, v: 0}]}, updated({a: [{k: 2, v: 1}, {k: 2, v: 5}]}, {a: {$elemMatch: {k: 2, v: 5}}}, {$set: {"a.$.v": 0}}));
assert.eq({a: [1, null, 3]}, updated({a: [1, 2, 3]}, {a: 2}, {$unset: {"a.$": 1}}));
assert.eq({o: {a: [{k: 1, t: [0]}]}}, updated({o: {a: [{k: 1}]}}, {"o.a.k": 1}, {$push: {"o.a.$.t": 0}}));
assert.eq({a: [{b: [1, 2]}, {b: [3, 4]}]}, updated({a: [{b: [1, 2]}, {b: [3, 9]}]}, {"a.b": 9}, {$set: {"a.$.b": [3, 4]}}));

// Each document of a multi update has its own position.
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: [5, 6]}, {_id: 2, a: [6, 5]}, {_id: 3, a: [7]}]));
assert.eq(2, assert.commandWorked(coll.update({a: 5}, {$set: {"a.$": 0}}, {multi: true})).nModified);
assert.eq([{_id: 1, a: [0, 6]}, {_id: 2, a: [6, 0]}, {_id: 3, a: [7]}], coll.find().sort({_id: 1}).toArray());

assert.commandFailedWithCode(coll.update({_id: 3}, {$set: {"a.$": 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 3, a: 7}, {$set: {"a.$.$": 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.update({_id: 3, a: 7}, {$set: {"$": 1}}), [ErrorCodes.BadValue, ErrorCodes.DollarPrefixedFieldName]);
assert.commandFailedWithCode(coll.update({_id: 77, a: 7}, {$set: {"a.$": 1}}, {upsert: true}), ErrorCodes.BadValue);
assert.eq(3, coll.find().itcount());
