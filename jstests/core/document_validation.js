/**
 * A validator keeps documents of another shape out of a collection.
 * Fails when an insert or update of an invalid document is stored, the level or action is not heeded, or a valid one is refused.
 */
const coll = db.document_validation;
coll.drop();
assert.commandWorked(db.createCollection(coll.getName(), {validator: {a: {$type: "number"}}}));

assert.commandWorked(coll.insert({_id: 1, a: 5}));
const reply = db.runCommand({insert: coll.getName(), documents: [{_id: 2, a: "x"}, {_id: 3, a: 1}], ordered: false});
assert.eq(1, reply.n);
assert.eq(ErrorCodes.DocumentValidationFailure, reply.writeErrors[0].code);
assert.eq("Document failed validation", reply.writeErrors[0].errmsg);
assert.eq(2, reply.writeErrors[0].errInfo.failingDocumentId);
assert.eq({
    operatorName: "$type",
    specifiedAs: {a: {$type: "number"}},
    reason: "type did not match",
    consideredValue: "x",
    consideredType: "string",
}, reply.writeErrors[0].errInfo.details);

assert.commandFailedWithCode(coll.insert({_id: 4}), ErrorCodes.DocumentValidationFailure);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {a: "x"}}), ErrorCodes.DocumentValidationFailure);
assert.commandFailedWithCode(coll.update({_id: 1}, {$unset: {a: 1}}), ErrorCodes.DocumentValidationFailure);
assert.commandFailedWithCode(coll.update({_id: 5}, {$set: {b: 1}}, {upsert: true}), ErrorCodes.DocumentValidationFailure);
assert.commandFailedWithCode(db.runCommand({findAndModify: coll.getName(), query: {_id: 1}, update: {$set: {a: "x"}}}),
                             ErrorCodes.DocumentValidationFailure);
assert.eq([{_id: 1, a: 5}, {_id: 3, a: 1}], coll.find().sort({_id: 1}).toArray());

// Clients may go past it.
assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{_id: 6, a: "x"}], bypassDocumentValidation: true}));

// The moderate level lets invalid documents stay invalid, the strict one does not; warning lets everything pass.
assert.commandFailedWithCode(coll.update({_id: 6}, {$set: {b: 1}}), ErrorCodes.DocumentValidationFailure);
assert.commandWorked(db.runCommand({collMod: coll.getName(), validationLevel: "moderate"}));
assert.commandWorked(coll.update({_id: 6}, {$set: {b: 1}}));
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {a: "y"}}), ErrorCodes.DocumentValidationFailure);
assert.commandWorked(db.runCommand({collMod: coll.getName(), validationAction: "warn"}));
assert.commandWorked(coll.insert({_id: 7, a: "z"}));
assert.commandWorked(db.runCommand({collMod: coll.getName(), validationLevel: "off", validationAction: "error"}));
assert.commandWorked(coll.insert({_id: 8, a: "z"}));

// A schema is a validator as well.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validationLevel: "strict", validator: {$jsonSchema: {required: ["name"]}}}));
assert.commandFailedWithCode(coll.insert({_id: 9}), ErrorCodes.DocumentValidationFailure);
assert.commandWorked(coll.insert({_id: 9, name: "n"}));

// One that asks for the time is asked at each write, not once when it was made.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {$expr: {$and: [{$lte: ["$at", "$$NOW"]}, {$gt: ["$$NOW", "$at"]}]}}}));
assert.commandWorked(coll.insert({_id: 10, at: new Date(Date.now() - 1000)}));
assert.commandFailedWithCode(coll.insert({_id: 11, at: new Date(Date.now() + 3600 * 1000)}), ErrorCodes.DocumentValidationFailure);

// A schema may ask for values that a client has encrypted, and of which types they were; then nothing else may be let in and logged.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {}}));
const encrypted = name => ({$jsonSchema: {properties: {ssn: {[name]: {bsonType: "string"}}}}});
const secret = {validator: encrypted("encrypt")};
for (const lenient of [{validationAction: "warn"}, {validationLevel: "moderate"}]) {
    assert.commandFailedWithCode(
        db.createCollection("document_validation_refused", Object.assign({}, secret, lenient)), ErrorCodes.QueryFeatureNotAllowed);
}
assert.commandFailedWithCode(db.createCollection("document_validation_refused", {validator: encrypted("encryptMetadata")}), 40415);
assert.commandWorked(db.runCommand(Object.assign({collMod: coll.getName()}, secret)));
assert.commandFailedWithCode(
    db.runCommand({collMod: coll.getName(), validationAction: "warn"}), ErrorCodes.QueryFeatureNotAllowed);
// The way it was encrypted, the id of its key, the type it had, and what only the client can read.
const cipher = (type) => HexData(6, "01" + "00".repeat(16) + type + "abcd");
assert.commandWorked(coll.insert({_id: 12, ssn: cipher("02")}));
const plain = db.runCommand({insert: coll.getName(), documents: [{_id: 13, ssn: "123"}]});
assert.eq(ErrorCodes.DocumentValidationFailure, plain.writeErrors[0].code);
const [property] = plain.writeErrors[0].errInfo.details.schemaRulesNotSatisfied[0].propertiesNotSatisfied;
assert.eq(["encrypt", "value was not encrypted"], [property.details[0].operatorName, property.details[0].reason]);
assert.commandFailedWithCode(coll.insert({_id: 14, ssn: cipher("10")}), ErrorCodes.DocumentValidationFailure);
