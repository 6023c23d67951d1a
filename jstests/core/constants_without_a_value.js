/**
 * An expression that no document has a part in is evaluated before a command runs: one without a value fails every run of it, not only
 * those that meet a document.
 * Fails if a command succeeds because no document matches, or if what is never optimised, or is passed over by what is known before, is evaluated.
 */
const coll = db.constants_without_a_value;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, n: 1}));
const name = coll.getName();
const never = {$divide: [1, 0]};
const filter = {_id: 0, $expr: {$gt: ["$n", never]}};

const refused = command => assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.BadValue, () => tojson(command));
refused({find: name, filter: filter});
refused({find: name, filter: {$and: [{_id: 0}, {$or: [{n: 1}, {$expr: never}]}]}});
refused({find: name, filter: {n: 0}, projection: {x: never}});
refused({count: name, query: filter});
refused({distinct: name, key: "n", query: filter});
refused({findAndModify: name, query: filter, remove: true});
refused({explain: {find: name, filter: filter}});
const written = command => assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.BadValue, () => tojson(command));
written({update: name, updates: [{q: filter, u: {$set: {x: 1}}}]});
written({update: name, updates: [{q: {n: 0}, u: [{$set: {x: never}}], multi: true}]});
written({delete: name, deletes: [{q: filter, limit: 0}]});

const pipeline = (...stages) => ({aggregate: name, pipeline: [{$match: {n: 0}}, ...stages], cursor: {}});
const optimised = (...stages) => {
    const failed = assert.commandFailedWithCode(db.runCommand(pipeline(...stages)), ErrorCodes.BadValue, () => tojson(stages));
    assert.eq("Failed to optimize pipeline :: caused by :: can't $divide by zero", failed.errmsg);
    refused({explain: pipeline(...stages), verbosity: "queryPlanner"});
};
optimised({$project: {x: never}});
optimised({$set: {x: {y: ["$n", {$add: ["$n", never]}]}}});
optimised({$group: {_id: "$n", x: {$sum: never}}});
optimised({$facet: {a: [{$set: {x: never}}]}});
optimised({$set: {x: {$ifNull: ["$n", never]}}});
optimised({$set: {x: {$map: {input: "$n", in: never}}}});
optimised({$set: {x: {$switch: {branches: [{case: true, then: 1}], default: never}}}});
optimised({$set: {x: {$convert: {input: "$n", to: "int", onError: never, onNull: 0}}}});
optimised({$set: {x: {$or: [never, "$n"]}}});
// All that a condition has is optimised before it is looked at what it chooses.
optimised({$set: {x: {$cond: [true, 1, never]}}});
optimised({$set: {x: {$cond: {if: {$eq: [1, 2]}, then: never, else: "$n"}}}});
// Of the branches of a switch only those that are left by the constants before them.
const one = {$eq: [1, 1]}, other = {$eq: [1, 2]};
optimised({$set: {x: {$switch: {branches: [{case: one, then: never}], default: 1}}}});
optimised({$set: {x: {$switch: {branches: [{case: other, then: 1}], default: never}}}});
optimised({$set: {x: {$switch: {branches: [{case: "$n", then: 1}, {case: other, then: 1}, {case: "$n", then: never}], default: 1}}}});
optimised({$set: {x: {$switch: {branches: [{case: {$cond: [true, false, never]}, then: 1}], default: 1}}}});

// What is wrong with the text of a later stage comes first.
assert.commandFailedWithCode(db.runCommand(pipeline({$set: {x: never}}, {$nothing: 1})), 40324);

const passes = (...stages) => assert.eq([], assert.commandWorked(db.runCommand(pipeline(...stages))).cursor.firstBatch);
passes({$set: {x: {$divide: ["$n", 0]}}});
passes({$set: {x: {$switch: {branches: [{case: false, then: never}], default: 1}}}});
passes({$set: {x: {$switch: {branches: [{case: true, then: 1}, {case: {$gt: [never, 0]}, then: 2}]}}}});
passes({$set: {x: {$switch: {branches: [{case: other, then: never}], default: 0}}}});
passes({$set: {x: {$switch: {branches: [{case: "$n", then: 1}, {case: one, then: 2}, {case: never, then: never}], default: "$n"}}}});
passes({$set: {x: {$cond: ["$n", 1, {$divide: ["$n", 0]}]}}});
// A pipeline of a join is optimised when it runs.
passes({$lookup: {from: name, pipeline: [{$set: {x: never}}], as: "joined"}});

// A last argument that decides is all that is evaluated.
const value = expression => coll.aggregate([{$project: {_id: 0, v: expression}}]).toArray()[0].v;
assert.eq(true, value({$or: [{$divide: ["$n", 0]}, true]}));
assert.eq(false, value({$and: [{$divide: ["$n", 0]}, null]}));
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$set: {v: {$or: [{$divide: ["$n", 0]}, false]}}}], cursor: {}}), ErrorCodes.BadValue);

// A validator is no command: it may stand, and is asked for each document.
const checked = db.constants_in_a_validator;
checked.drop();
assert.commandWorked(db.createCollection(checked.getName(), {validator: {$expr: {$gt: ["$n", {$add: [1, 1]}]}}}));
assert.commandWorked(checked.insert({n: 3}));
assert.commandFailedWithCode(checked.insert({n: 1}), ErrorCodes.DocumentValidationFailure);
