/**
 * Drivers rely on the insert command to refuse malformed requests as a whole, before any document is stored.
 * Fails when the server takes an empty batch, an unknown field or documents of the wrong type.
 */
const coll = db.insert_command_arguments;
coll.drop();
const name = coll.getName();

assert.commandFailedWithCode(db.runCommand({insert: name, documents: []}), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(db.runCommand({insert: name}), 40414);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: {_id: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [1]}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 1}], unheardOf: 1}), 40415);
assert.commandFailedWithCode(db.runCommand({insert: name, documents: [{_id: 1}], ordered: "yes"}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({insert: "", documents: [{_id: 1}]}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({insert: 5, documents: [{_id: 1}]}), [ErrorCodes.BadValue, ErrorCodes.InvalidNamespace]);
assert.eq(0, coll.find().itcount());

// One hundred thousand documents are a batch, one more are not.
const many = [];
for (let i = 0; i < 100001; i++) {
    many.push({});
}
assert.commandFailedWithCode(db.runCommand({insert: name, documents: many}), ErrorCodes.InvalidLength);
assert.eq(0, coll.find().itcount());

// A document of a batch that is refused leaves the ones before it in an ordered batch.
const reply = db.runCommand({insert: name, documents: [{_id: 1}, {_id: [1]}, {_id: 2}]});
assert.eq(1, reply.ok);
assert.eq(1, reply.n);
assert.eq(1, reply.writeErrors[0].index);
assert.eq([{_id: 1}], coll.find().toArray());
