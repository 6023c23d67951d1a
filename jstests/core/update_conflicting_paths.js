/**
 * Two modifiers may not touch the same path or one within the other, since their order has no meaning.
 * Fails when such an update is applied, in part or as a whole, instead of being refused.
 */
const coll = db.update_conflicting_paths;
coll.drop();
const doc = {_id: 1, a: {b: 1, c: 2}, l: [1, 2, 3]};
assert.commandWorked(coll.insert(doc));

const conflicts = [
    {$set: {"a.b": 1, a: 2}},
    {$set: {a: 2}, $unset: {"a.b": 1}},
    {$set: {"a.b": 1}, $inc: {"a.b": 1}},
    {$set: {x: 1}, $inc: {"x.y": 1}},
    {$push: {l: 1}, $pull: {l: 2}},
    {$push: {l: 1}, $set: {"l.0": 5}},
    {$rename: {a: "z"}, $set: {z: 1}},
    {$rename: {a: "z"}, $set: {"a.b": 1}},
    {$min: {"a.c": 1}, $max: {"a.c": 5}},
    {$set: {"l.$[]": 1}, $inc: {l: 1}},
    {$set: {"l.$[]": 1, "l.0": 2}},
    {$set: {"l.0.a": 2, "l.$[].b": 1}},
    {$setOnInsert: {"a.b": 1}, $set: {"a.b": 1}},
];
for (const update of conflicts) {
    assert.commandFailedWithCode(coll.update({_id: 1}, update), ErrorCodes.ConflictingUpdateOperators, () => tojson(update));
    assert.commandFailedWithCode(db.runCommand({findAndModify: coll.getName(), query: {_id: 1}, update: update}),
                                 ErrorCodes.ConflictingUpdateOperators,
                                 () => tojson(update));
}
assert.eq(doc, coll.findOne());

// Siblings do not conflict, nor do names of which one begins like the other.
assert.commandWorked(coll.update({_id: 1}, {$set: {"a.b": 10}, $inc: {"a.c": 1}, $unset: {"a.bb": 1}}));
assert.eq({b: 10, c: 3}, coll.findOne().a);
assert.commandWorked(coll.update({_id: 1}, {$set: {"l.0": 7, "l.1": 8}}));
assert.eq([7, 8, 3], coll.findOne().l);
