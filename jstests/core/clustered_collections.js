/**
 * A clustered collection is scanned in the order of `_id`, by bounds where the filter has some, and lists its index as clustered.
 * Fails when a scan follows the order of insertion, the clustered index can be dropped or hidden, or an option is taken that the real server refuses.
 *
 * @tags: [
 *   # A sharded collection merges the scans of its shards.
 *   assumes_unsharded_collection,
 * ]
 */
import {planStageNames} from "jstests/libs/plan_stages.js";

const coll = db.clustered_collections;
const name = coll.getName();
const definition = {key: {_id: 1}, unique: true, name: "by_id"};
coll.drop();
assert.commandWorked(db.createCollection(name, {clusteredIndex: definition}));
assert.commandWorked(db.createCollection(name, {clusteredIndex: {...definition, v: 2}}));

const info = db.getCollectionInfos({name})[0];
assert.eq({v: 2, key: {_id: 1}, name: "by_id", unique: true}, info.options.clusteredIndex);
assert(!info.hasOwnProperty("idIndex"), tojson(info));
assert.eq([{v: 2, key: {_id: 1}, name: "by_id", unique: true, clustered: true}], coll.getIndexes());
assert.eq(0, coll.stats().nindexes);

assert.commandWorked(coll.insert([5, 3, 9, 1, 7].map(i => ({_id: i, a: i % 3}))));
assert.commandFailedWithCode(coll.insert({_id: 3}), ErrorCodes.DuplicateKey);
const ids = cursor => cursor.toArray().map(d => d._id);
assert.eq([1, 3, 5, 7, 9], ids(coll.find()));
assert.eq([1, 7], ids(coll.find({a: 1})));
assert.eq([9, 7, 5, 3, 1], ids(coll.find().sort({$natural: -1})));
assert.eq([9, 7, 5, 3, 1], ids(coll.find().sort({_id: -1})));
assert.eq([3, 5], ids(coll.find().min({_id: 3}).max({_id: 7}).hint("by_id")));
assert.eq([1, 3], ids(coll.find().batchSize(1).limit(2)));
assert.eq([3, 5, 7], coll.aggregate([{$match: {_id: {$gt: 1, $lt: 9}}}]).toArray().map(d => d._id));

// Explain shows a scan of the collection, with its bounds.
function stage(cursor) {
    const plan = cursor.explain().queryPlanner.winningPlan;
    const node = plan.shards ? plan.shards[0].winningPlan : plan;
    return node;
}
const bounded = stage(coll.find({_id: {$gte: 3, $lt: 8}}));
assert.eq("CLUSTERED_IXSCAN", bounded.stage);
assert.eq([3, 8], [bounded.minRecord, bounded.maxRecord]);
assert.eq("COLLSCAN", stage(coll.find({a: 1})).stage);
assert.eq("CLUSTERED_IXSCAN", stage(coll.find({_id: {$gt: 3}}).hint({_id: 1})).stage);
assert.contains("EXPRESS_CLUSTERED_IXSCAN", planStageNames(coll.find({_id: 3}).explain()));
const statistics = coll.find({_id: {$gte: 3, $lt: 8}}).explain("executionStats").executionStats;
const counted = [statistics.nReturned, statistics.totalKeysExamined, statistics.totalDocsExamined];
assert.eq([3, 0, 3], counted.map(Number));

// Indexes beside it.
assert.commandWorked(coll.createIndex({a: 1}));
assert.eq([1, 7], ids(coll.find({a: 1})));
const again = assert.commandWorked(db.runCommand({createIndexes: name, indexes: [{key: {_id: 1}, name: "other"}]}));
assert.eq([1, 1], [again, again].map(r => (r.raw ? Object.values(r.raw)[0] : r).numIndexesAfter));
for (const index of ["by_id", {_id: 1}]) {
    assert.commandFailedWithCode(db.runCommand({dropIndexes: name, index}), 5979800);
}
assert.commandFailedWithCode(db.runCommand({collMod: name, index: {name: "by_id", hidden: true}}), 6011800);
assert.commandFailedWithCode(
    db.runCommand({collMod: name, index: {keyPattern: {_id: 1}, hidden: true}}), ErrorCodes.IndexNotFound);
assert.commandWorked(db.runCommand({dropIndexes: name, index: "*"}));
assert.eq(1, coll.getIndexes().length);

// Documents expire by their `_id`.
assert.commandFailedWithCode(db.runCommand({collMod: name, expireAfterSeconds: -1}), ErrorCodes.InvalidOptions);
assert.commandWorked(db.runCommand({collMod: name, expireAfterSeconds: 100}));
assert.eq(100, db.getCollectionInfos({name})[0].options.expireAfterSeconds);
assert.commandWorked(db.runCommand({collMod: name, expireAfterSeconds: "off"}));
assert(!db.getCollectionInfos({name})[0].options.hasOwnProperty("expireAfterSeconds"));
assert.commandWorked(coll.validate());

// What create refuses.
const other = name + "_refused";
function refused(code, options) {
    assert.commandFailedWithCode(db.runCommand({create: other, ...options}), code, tojson(options));
}
refused(5979703, {clusteredIndex: true});
refused(5979700, {clusteredIndex: {key: {_id: 1}, unique: false}});
refused(5979704, {clusteredIndex: {key: {_id: 1}, unique: true, v: 1}});
refused(197, {clusteredIndex: {key: {a: 1}, unique: true}});
refused(40414, {clusteredIndex: {key: {_id: 1}}});
refused(6049200, {clusteredIndex: definition, capped: true, size: 4096});
refused(6049204, {clusteredIndex: definition, max: 10});
refused(6026500, {clusteredIndex: definition, viewOn: name, pipeline: []});
refused(ErrorCodes.InvalidOptions, {clusteredIndex: definition, idIndex: {key: {_id: 1}, name: "_id_"}});
refused(ErrorCodes.InvalidOptions, {expireAfterSeconds: 10});
coll.drop();
