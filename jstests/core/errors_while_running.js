/**
 * Clients show the message of an error, and tests compare it: what fails on a document is told apart from what is wrong with the command.
 * It fails if a message lacks the words for the command that was running, has them twice, or has them where nothing ran yet.
 */
import {FixtureHelpers} from "jstests/libs/fixture_helpers.js";

const coll = db.errors_while_running;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, n: 1, s: "x", zero: 0}, {_id: 2, n: 2, s: "y", zero: 0}]));
const ns = coll.getFullName();
const byZero = {$divide: ["$n", "$zero"]};
const message = (command) => assert.commandFailed(db.runCommand(command)).errmsg;

// A router merges and adds the words of its own reads to none; what its shards say it hands on.
const find = `Executor error during find command: ${ns} :: caused by :: can't $divide by zero`;
assert.eq(find, message({find: coll.getName(), filter: {$expr: byZero}}));
assert.eq(find, message({find: coll.getName(), projection: {q: byZero}}));
assert.eq(find, message({find: coll.getName(), filter: {_id: 1}, projection: {q: byZero}}));

const pipeline = (...stages) => ({aggregate: coll.getName(), pipeline: stages, cursor: {}});
const running = `Executor error during aggregate command on namespace: ${ns} :: caused by :: `;
assert.eq(running + "can't $divide by zero", message(pipeline({$project: {q: byZero}})));
assert.eq(running + "$add only supports numeric or date types, not string", message(pipeline({$project: {q: {$add: ["$n", "$s"]}}})));
// Which part no document has is known before.
assert.eq("Failed to optimize pipeline :: caused by :: can't $divide by zero", message(pipeline({$project: {q: {$divide: [1, 0]}}})));
assert.eq("Failed to optimize pipeline :: caused by :: can't $divide by zero",
          message(pipeline({$project: {q: {$add: ["$n", {$divide: [1, 0]}]}}})));
// What is wrong with the command itself.
assert.eq("Unrecognized pipeline stage name: '$none'", message(pipeline({$none: 1})));
assert.eq("unknown operator: $none", message({find: coll.getName(), filter: {n: {$none: 1}}}));

const modify = "Plan executor error during findAndModify :: caused by :: ";
assert.commandWorked(coll.createIndex({_id: 1, s: 1}));
const twice = message({findAndModify: coll.getName(), query: {_id: 1}, update: {$set: {_id: 2}}});
assert.eq(modify + "Performing an update on the path '_id' would modify the immutable field '_id'", twice);
assert.eq(modify + "Cannot apply $inc to a value of non-numeric type. {_id: 1.0} has the field 's' of non-numeric type string",
          message({findAndModify: coll.getName(), query: {_id: 1}, update: {$inc: {s: 1}}}));
assert.eq("Unknown modifier: $none. Expected a valid update modifier or pipeline-style update specified as an array",
          message({findAndModify: coll.getName(), query: {_id: 1}, update: {$none: {s: 1}}}));

// A later batch.
const cursor = assert.commandWorked(db.runCommand({find: coll.getName(), sort: {_id: 1}, batchSize: 1,
    projection: {q: {$cond: [{$eq: ["$_id", 1]}, 1, byZero]}}})).cursor;
assert.eq([{_id: 1, q: 1}], cursor.firstBatch);
const later = assert.commandFailed(db.runCommand({getMore: cursor.id, collection: coll.getName()}));
// A router that computes the projection itself, since several shards hold the collection, says no more.
const context = later.errmsg === "can't $divide by zero" && FixtureHelpers.isMongos(db) ? "" : "Executor error during getMore :: caused by :: ";
assert(later.errmsg.endsWith(context + "can't $divide by zero"), tojson(later));

// An operand's name is its own.
const bit = assert.commandWorkedIgnoringWriteErrors(db.runCommand({update: coll.getName(), updates: [{q: {_id: 1}, u: {$bit: {n: {and: true}}}}]}));
assert.eq("The $bit modifier field must be an Integer(32/64 bit); a 'bool' is not supported here: {and: true}", bit.writeErrors[0].errmsg);
