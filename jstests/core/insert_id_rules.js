/**
 * Every document has an _id, first among its fields, of a type that an equality match can find again.
 * Fails when the server stores a document without an _id, keeps it out of first place, or takes an array or a regex for one.
 *
 * @tags: [
 *   # Arrays are refused as shard keys before they are refused as _id.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.insert_id_rules;
coll.drop();

// The server makes an ObjectId where neither client nor shell made one.
assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{a: 1}]}));
const made = coll.findOne({a: 1});
assert.eq(["_id", "a"], Object.keys(made));
assert(made._id instanceof ObjectId, tojson(made));

// An _id that comes later in the document is moved to the front; the others keep their order.
assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{z: 1, y: 2, _id: "moved", x: 3}]}));
assert.eq(["_id", "z", "y", "x"], Object.keys(coll.findOne({_id: "moved"})));

function refused(id) {
    const reply = db.runCommand({insert: coll.getName(), documents: [{_id: id}]});
    assert.commandFailedWithCode(reply, [ErrorCodes.BadValue, ErrorCodes.InvalidIdField, 53], () => tojson(id));
    assert.eq(0, reply.n);
}
refused([1, 2]);
refused([]);
refused(/pattern/);

// A document may not hold operators as names within its _id.
assert.commandFailedWithCode(coll.insert({_id: {$a: 1}}), [ErrorCodes.DollarPrefixedFieldName, 52]);

// Everything else may be an _id, null included, and equal numbers of different types are one.
for (const id of [null, true, "", 1.5, {a: 1, b: [1]}, MinKey, MaxKey, new Date(0), Timestamp(1, 2)]) {
    assert.commandWorked(coll.insert({_id: id}));
    assert.eq(1, coll.find({_id: id}).itcount(), () => tojson(id));
}
assert.commandWorked(coll.insert({_id: NumberInt(7)}));
assert.commandFailedWithCode(coll.insert({_id: NumberLong(7)}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.insert({_id: 7.0}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(coll.insert({_id: NumberDecimal("7.00")}), ErrorCodes.DuplicateKey);
