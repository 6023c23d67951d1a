/**
 * The log tells of documents that a validator does not accept, where its action is to warn.
 * It fails if such a document is refused or the log says nothing of it, or if it tells of others: accepted ones, and those that
 * are refused, or written past the validator.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({});
const db = conn.getDB("validation");
const logged = (document) => checkLog.checkContainsOnceJson(conn, 20294, {namespace: "validation.c", document}, "W");
const act = (validationAction) => assert.commandWorked(db.runCommand({collMod: "c", validationAction}));

assert.commandWorked(db.createCollection("c", {validator: {a: {$type: "number"}}, validationAction: "warn"}));
assert.commandWorked(db.c.insert([{_id: 1, a: 1}, {_id: 2, a: "x"}]));
assert(checkLog.checkContainsWithCountJson(conn, 20294, {}, 1));
const [line] = checkLog.getFilteredLogMessages(conn, 20294);
assert.eq(["W", "STORAGE", "Document would fail validation"], [line.s, line.c, line.msg]);
assert.eq(["namespace", "document", "errInfo"], Object.keys(line.attr));
assert.eq({_id: 2, a: "x"}, line.attr.document);
assert.eq(2, line.attr.errInfo.failingDocumentId);
assert.eq("$type", line.attr.errInfo.details.operatorName);

assert.commandWorked(db.c.update({_id: 1}, {$set: {a: "y"}}));
assert.commandWorked(db.c.update({_id: 3}, {$set: {b: 1}}, {upsert: true}));
assert(logged({_id: 1, a: "y"}));
assert(logged({_id: 3, b: 1}));
assert.eq(3, db.c.find().itcount());

assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 4}], bypassDocumentValidation: true}));
act("error");
assert.commandFailedWithCode(db.c.insert({_id: 5}), ErrorCodes.DocumentValidationFailure);
assert(checkLog.checkContainsWithCountJson(conn, 20294, {}, 3));
act("errorAndLog");
assert.commandFailedWithCode(db.c.insert({_id: 6}), ErrorCodes.DocumentValidationFailure);
assert(logged({_id: 6}));

// What a validator fails for is not accepted, and a warning refuses nothing.
const fails = {$expr: {$eq: [{$divide: [1, "$a"]}, 1]}};
assert.commandWorked(db.runCommand({collMod: "c", validator: fails, validationAction: "warn"}));
assert.commandWorked(db.c.insert({_id: 7, a: 0}));
assert(logged({_id: 7, a: 0}));

// A long document is shown by its beginning, so that no line is as long as it.
assert.commandWorked(db.c.insert({_id: 8, a: 2, long: "x".repeat(100000)}));
assert(logged((document) => String(document.$truncated).startsWith("{ _id: 8")));
MongoRunner.stopMongod(conn);
