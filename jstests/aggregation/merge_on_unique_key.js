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
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$set: {team: ["a"]}}, {$unset: "_id"}, merge], cursor: {}}), [51132, 51185]);

// The index is asked for before any result is looked at.
assert.commandWorked(target.dropIndexes());
const keyless = [{$project: {_id: 0, team: 1}}, merge];
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: keyless, cursor: {}}), [51183, 51190]);
