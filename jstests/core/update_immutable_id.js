/**
 * The _id of a document never changes, by whichever operator.
 * Fails when any update gives a stored document another _id, or refuses one that leaves it as it is.
 */
const coll = db.update_immutable_id;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 5}, {_id: {x: 1, y: 2}, a: 6}]));

for (const update of [
         {$set: {_id: 2}},
         {$inc: {_id: 1}},
         {$unset: {_id: 1}},
         {$rename: {_id: "b"}},
         {$rename: {a: "_id"}},
         {$max: {_id: 10}},
         {$mul: {_id: 3}},
         {$currentDate: {_id: true}},
         {$set: {"_id.x": 1}},
         {_id: 2},
         {_id: "1"},
     ]) {
    assert.commandFailedWithCode(coll.update({_id: 1}, update), [ErrorCodes.ImmutableField, ErrorCodes.PathNotViable], () => tojson(update));
}
for (const update of [{$set: {"_id.x": 2}}, {$unset: {"_id.y": 1}}, {$set: {"_id.z": 1}}, {_id: {y: 2, x: 1}}]) {
    assert.commandFailedWithCode(coll.update({a: 6}, update), ErrorCodes.ImmutableField, () => tojson(update));
}

// Updates that leave it the same value are fine.
assert.commandWorked(coll.update({_id: 1}, {$set: {_id: 1, b: 1}}));
assert.commandWorked(coll.update({_id: 1}, {$max: {_id: 0}}));
assert.commandWorked(coll.update({_id: 1}, {_id: 1, c: 1}));
assert.commandWorked(coll.update({a: 6}, {$set: {"_id.x": 1}}));
assert.eq([{_id: 1, c: 1}, {_id: {x: 1, y: 2}, a: 6}], coll.find().sort({_id: 1}).toArray());
