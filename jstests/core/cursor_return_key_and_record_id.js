/**
 * returnKey and showRecordId show what an index holds, for those who look into plans.
 * Fails when returnKey gives anything but the key of the index used, or showRecordId gives no $recordId.
 */
const coll = db.cursor_return_key_and_record_id;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 1, b: "x"}, {_id: 2, a: 2, b: "y"}, {_id: 3, a: [3, 4], b: "z"}]));
assert.commandWorked(coll.createIndex({a: 1, b: 1}));

assert.eq([{a: 1, b: "x"}, {a: 2, b: "y"}], coll.find({a: {$lte: 2}}).hint({a: 1, b: 1}).sort({a: 1}).returnKey().toArray());
assert.eq([{_id: 2}], coll.find({_id: 2}).hint({_id: 1}).returnKey().toArray());
// Without an index there is no key.
assert.eq([{}], coll.find({b: "y"}).hint({$natural: 1}).returnKey().toArray());
// A multikey index returns each document once.
const key = coll.find({a: {$gte: 3}}).hint({a: 1, b: 1}).returnKey().toArray();
assert.eq(1, key.length);
assert.eq("z", key[0].b);

const shown = coll.find().sort({_id: 1}).showRecordId().toArray();
assert.eq([1, 2, 3], shown.map(doc => doc._id));
for (const doc of shown) {
    assert(doc.hasOwnProperty("$recordId"), tojson(doc));
    assert.eq("number", typeof Number(doc.$recordId));
}

// A key is shown alone.
assert.eq([{_id: 1}, {_id: 2}, {_id: 3}], coll.find().sort({_id: 1}).hint({_id: 1}).returnKey().showRecordId().toArray());

assert.commandFailedWithCode(db.runCommand({find: coll.getName(), returnKey: "yes"}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), showRecordId: "yes"}), ErrorCodes.TypeMismatch);
