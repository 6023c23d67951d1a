/**
 * $out replaces a collection by the result of a pipeline, as a whole or not at all.
 * Fails when old documents survive, a failing pipeline changes the target, or indexes of the target are lost.
 *
 * @tags: [
 *   # $out cannot replace a sharded collection.
 *   assumes_unsharded_collection,
 * ]
 */
const source = db.out_stage_source;
const target = db.out_stage_target;
source.drop();
target.drop();
assert.commandWorked(source.insert([{_id: 1, v: 10}, {_id: 2, v: 20}, {_id: 3, v: 30}]));

assert.eq([], source.aggregate([{$match: {v: {$gt: 10}}}, {$out: target.getName()}]).toArray());
assert.eq([{_id: 2, v: 20}, {_id: 3, v: 30}], target.find().sort({_id: 1}).toArray());

// The second time it replaces everything and keeps the indexes.
assert.commandWorked(target.createIndex({v: 1}, {unique: true}));
assert.commandWorked(target.insert({_id: 99, v: 99}));
source.aggregate([{$project: {v: 1}}, {$out: {db: db.getName(), coll: target.getName()}}]);
assert.eq([1, 2, 3], target.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq(["_id_", "v_1"], target.getIndexes().map(index => index.name).sort());

// A pipeline that fails when a part of its result is written leaves nothing beside the target.
const many = db.out_stage_many;
many.drop();
assert.commandWorked(many.insert([...Array(3000).keys()].map((i) => ({_id: i}))));
const failing = [{$set: {v: {$divide: [1, {$subtract: ["$_id", 2900]}]}}}, {$out: "out_stage_partial"}];
assert.commandFailedWithCode(db.runCommand({aggregate: many.getName(), pipeline: failing, cursor: {}}), [2, 16608, 4848401]);
assert.eq([], db.getCollectionNames().filter((name) => /^tmp\.agg_out|^out_stage_partial/.test(name)));
assert(many.drop());

// A failure leaves the target as it was.
assert.commandFailedWithCode(
    db.runCommand({aggregate: source.getName(), pipeline: [{$set: {v: 1}}, {$out: target.getName()}], cursor: {}}), ErrorCodes.DuplicateKey);
assert.commandFailedWithCode(
    db.runCommand({aggregate: source.getName(), pipeline: [{$set: {v: {$toInt: "x"}}}, {$out: target.getName()}], cursor: {}}), ErrorCodes.ConversionFailure);
assert.eq([10, 20, 30], target.find().sort({_id: 1}).toArray().map(doc => doc.v));

// Onto its own source.
source.aggregate([{$match: {_id: 1}}, {$out: source.getName()}]);
assert.eq([{_id: 1, v: 10}], source.find().toArray());
// An empty result makes an empty collection.
source.aggregate([{$match: {none: 1}}, {$out: target.getName()}]);
assert.eq(0, target.find().itcount());

function refused(codes, ...pipeline) {
    assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(pipeline));
}
refused(40601, {$out: "x"}, {$match: {}});
refused([16990, ErrorCodes.FailedToParse], {$out: 1});
refused([ErrorCodes.InvalidNamespace, 17385], {$out: "a$b"});
refused([17385, 31321, ErrorCodes.InvalidNamespace], {$out: "system.secret"});
refused([40415, ErrorCodes.FailedToParse, 16994], {$out: {coll: "x", db: db.getName(), unheardOf: 1}});
