/**
 * validate asks the validator of each document, and ends with its time or memory where the validator does not.
 * Fails if a validator's work is neither counted nor ended: an array that doubles took all memory, a regular expression had no end.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const coll = db.validate_ends_in_time;
coll.drop();
assert.commandWorked(coll.insert([{_id: 0, s: "ab".repeat(50000) + "dcx"}, {_id: 1, s: "d"}]));

const doubled = {$reduce: {input: {$range: [0, 40]}, initialValue: ["$s"], in: {$concatArrays: ["$$value", "$$value"]}}};
for (const validator of [{s: /a.*b.*c.*d/}, {$expr: {$gt: [{$size: doubled}, 0]}}]) {
    assert.commandWorked(db.runCommand({collMod: coll.getName(), validator, validationAction: "warn"}));
    const reply = endsInTime(db, {validate: coll.getName()}, {codes: [ErrorCodes.ExceededMemoryLimit]});
    assert.eq(0, reply.ok, tojson(reply));
}

// What the validator fails at does not comply, and ends nothing.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {$expr: {$gt: [{$divide: [1, "$s"]}, 0]}}}));
const reply = assert.commandWorked(db.runCommand({validate: coll.getName()}));
const replies = reply.raw === undefined ? [reply] : Object.values(reply.raw);
assert.eq(2, replies.reduce((total, reply) => total + reply.nNonCompliantDocuments, 0), tojson(reply));
coll.drop();
