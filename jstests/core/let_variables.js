/**
 * Commands carry variables for their expressions in let, so that clients need not build them into the text.
 * Fails when a variable is not seen, keeps a value from elsewhere, or a name that is none is taken.
 */
const coll = db.let_variables;
coll.drop();
assert.commandWorked(coll.insert([...Array(6).keys()].map(i => ({_id: i, v: i * 10}))));
const name = coll.getName();
const expression = {$expr: {$eq: ["$v", "$$wanted"]}};

assert.eq([{_id: 3, v: 30}], assert.commandWorked(db.runCommand({find: name, filter: expression, let: {wanted: 30}})).cursor.firstBatch);
assert.eq([{_id: 2, twice: 40}],
          assert.commandWorked(db.runCommand({find: name, filter: {_id: 2}, projection: {twice: {$multiply: ["$v", "$$by"]}}, let: {by: 2}})).cursor.firstBatch);
// Variables may be expressions, over those before them.
assert.eq([{_id: 5, v: 50}],
          assert.commandWorked(db.runCommand({aggregate: name, pipeline: [{$match: expression}], cursor: {}, let: {wanted: {$add: [20, 30]}}})).cursor.firstBatch);
assert.eq(1, assert.commandWorked(db.runCommand({update: name, updates: [{q: expression, u: [{$set: {was: "$$wanted"}}]}], let: {wanted: 10}})).n);
assert.eq({_id: 1, v: 10, was: 10}, coll.findOne({_id: 1}));
assert.eq({_id: 4, v: 40}, assert.commandWorked(db.runCommand({findAndModify: name, query: expression, remove: true, let: {wanted: 40}})).value);
assert.eq(1, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: expression, limit: 1}], let: {wanted: 50}})).n);
assert.eq([0, 1, 2, 3], coll.find().sort({_id: 1}).toArray().map(doc => doc._id));

// A literal dollar needs $literal, as everywhere.
assert.eq(4, assert.commandWorked(db.runCommand({find: name, filter: {$expr: {$eq: ["$$text", {$literal: "$v"}]}}, let: {text: {$literal: "$v"}}})).cursor.firstBatch.length);

assert.commandFailedWithCode(db.runCommand({find: name, filter: expression}), 17276);
assert.commandFailedWithCode(db.runCommand({find: name, filter: expression, let: {other: 1}}), 17276);
assert.commandFailedWithCode(db.runCommand({find: name, filter: expression, let: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({find: name, let: {Upper: 1}}), [ErrorCodes.FailedToParse, 16867]);
assert.commandFailedWithCode(db.runCommand({find: name, let: {"a.b": 1}}), [ErrorCodes.FailedToParse, 16868]);
assert.commandFailedWithCode(db.runCommand({find: name, let: {field: "$v"}}), 4890500);

// CURRENT is where the paths of fields begin; the root stays what it is.
const current = stages => assert.commandWorked(db.runCommand({
    aggregate: name, pipeline: [{$match: {_id: 3}}].concat(stages), cursor: {}, let: {CURRENT: {v: "let", own: 1}},
})).cursor.firstBatch;
assert.eq([{_id: 3, a: "let", b: {v: "let", own: 1}, c: 30}], current([{$project: {a: "$v", b: "$$CURRENT", c: "$$ROOT.v"}}]));
assert.eq([], current([{$match: {$expr: {$eq: ["$v", 30]}}}]));
assert.eq([{_id: 3, a: 7}], current([{$project: {a: {$let: {vars: {CURRENT: {v: 7}}, in: "$v"}}}}]));
