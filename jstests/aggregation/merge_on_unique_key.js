/**
 * $merge matches by other fields than _id where a unique index vouches for them.
 * Fails when a result matches by _id instead, or a key without a unique index is taken.
 *
 * @tags: [
 *   # A unique index must begin with the shard key.
 *   assumes_unsharded_collection,
 * ]
 */
const source = db.merge_on_unique_key_source;
const target = db.merge_on_unique_key_target;
source.drop();
target.drop();
assert.commandWorked(source.insert([{_id: 1, year: 2020, team: "a", n: 5}, {_id: 2, year: 2020, team: "b", n: 7}, {_id: 3, year: 2021, team: "a", n: 9}]));
assert.commandWorked(target.insert([{_id: "x", year: 2020, team: "a", n: 0}, {_id: "y", year: 2019, team: "a", n: 1}]));
const merge = {$merge: {into: target.getName(), on: ["year", "team"], whenMatched: "merge"}};
const pipeline = [{$project: {_id: 0}}, merge];

assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: pipeline, cursor: {}}), 51183);
assert.commandWorked(target.createIndex({year: 1, team: 1}));
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: pipeline, cursor: {}}), 51183);
assert.commandWorked(target.dropIndexes());
assert.commandWorked(target.createIndex({team: 1, year: -1}, {unique: true}));

source.aggregate(pipeline);
const result = target.find({}).sort({year: 1, team: 1}).toArray();
assert.eq([[2019, "a", 1], [2020, "a", 5], [2020, "b", 7], [2021, "a", 9]], result.map(doc => [doc.year, doc.team, doc.n]));
assert.eq("x", result[1]._id);
assert(result[2]._id instanceof ObjectId, tojson(result));

// A matched document keeps its _id, so a result with another one is refused.
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [merge], cursor: {}}), [ErrorCodes.ImmutableField, ErrorCodes.DuplicateKey]);
// Every result needs the key, as single values.
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$project: {_id: 0, team: 1}}, merge], cursor: {}}), 51132);
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$set: {team: ["a"]}}, {$unset: "_id"}, merge], cursor: {}}), 51185);

// What setting fields makes of nothing has them in the order in which updates visit fields; what is put in whole keeps its own.
function made(whenMatched) {
    assert.commandWorked(target.deleteMany({year: 1}));
    source.aggregate([{$match: {_id: 1}}, {$project: {_id: 1, z: "$n", team: 1, year: {$literal: 1}, a10: "$n", a: "$n"}}, {$set: {_id: "made"}}, {$merge: {into: target.getName(), on: ["year", "team"], whenMatched: whenMatched}}]);
    return Object.keys(target.findOne({year: 1}));
}
assert.eq(["_id", "team", "year", "a", "a10", "z"], made("merge"));
assert.eq(["_id", "team", "year", "a", "a10", "z"], made("keepExisting"));
for (let mode of ["replace", "fail", [{$set: {x: 1}}]]) {
    assert.eq(["_id", "team", "z", "year", "a10", "a"], made(mode));
}

// The index is asked for before any result is looked at, and where there is none.
assert.commandWorked(target.dropIndexes());
for (let stage of [{$project: {_id: 0, team: 1}}, {$match: {none: 1}}]) {
    assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [stage, merge], cursor: {}}), [51183, 51190]);
}
if (db.hello().msg !== "isdbgrid") {
    assert.commandFailedWithCode(db.runCommand({explain: {aggregate: source.getName(), pipeline: [merge], cursor: {}}, verbosity: "queryPlanner"}), 51183);
}
