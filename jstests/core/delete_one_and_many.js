/**
 * A delete removes one matching document or all of them, and says how many.
 * Fails when limit is passed over, another document is removed, or a malformed delete is taken.
 */
const coll = db.delete_one_and_many;

function reset() {
    coll.drop();
    assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i, g: i % 2}))));
}
const name = coll.getName();

reset();
assert.eq(5, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {g: 0}, limit: 0}]})).n);
assert.eq([1, 3, 5, 7, 9], coll.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq(1, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {g: 1}, limit: 1}]})).n);
assert.eq(4, coll.find({g: 1}).itcount());
assert.eq(0, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {g: 7}, limit: 0}]})).n);
assert.eq(4, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {_id: 1}, limit: 1}, {q: {}, limit: 0}]})).n);
assert.eq(0, coll.find().itcount());

reset();
assert.eq(1, assert.commandWorked(coll.remove({g: 1}, {justOne: true})).nRemoved);
assert.eq(1, coll.deleteOne({g: 1}).deletedCount);
assert.eq(3, coll.deleteMany({g: 1}).deletedCount);
assert.eq(5, assert.commandWorked(coll.remove({})).nRemoved);

reset();
for (const limit of [2, -1, 0.5, "1"]) {
    assert.commandFailedWithCode(db.runCommand({delete: name, deletes: [{q: {}, limit: limit}]}),
                                 [ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch],
                                 () => tojson(limit));
}
assert.commandFailedWithCode(db.runCommand({delete: name, deletes: [{q: {}}]}), 40414);
assert.commandFailedWithCode(db.runCommand({delete: name, deletes: [{limit: 0}]}), 40414);
assert.commandFailedWithCode(db.runCommand({delete: name, deletes: []}), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(db.runCommand({delete: name, deletes: [{q: {$bad: 1}, limit: 0}]}), ErrorCodes.BadValue);
assert.eq(10, coll.find().itcount());

// An ordered batch stops at the first refused statement, an unordered one goes on.
const statements = [{q: {_id: 0}, limit: 1}, {q: {x: {$bad: 1}}, limit: 1}, {q: {_id: 1}, limit: 1}];
const ordered = db.runCommand({delete: name, deletes: statements});
assert.eq([1, 1], [ordered.n, ordered.writeErrors[0].index]);
const unordered = db.runCommand({delete: name, deletes: statements, ordered: false});
assert.eq([1, 1, 1], [unordered.n, unordered.writeErrors.length, unordered.writeErrors[0].index]);
assert.eq(0, coll.find({_id: {$lt: 2}}).itcount());
