/**
 * $merge and $out take results of sharded collections to where they belong: $merge to the owners, whatever it does with what is there.
 * It fails if a document lands on a shard that does not own it, a mode does something else than on one node, or an unfit target is taken.
 *
 * @tags: [requires_sharding]
 */
import {
    freshDatabase,
    heldBy,
    shardByRanges,
    shardNames
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "merge_into_sharded", first);
const source = testDB.source;
shardByRanges(source, {x: 1}, [{x: 0}], [first, second]);
const ids = Array.from({length: 40}, (_, i) => i);
assert.commandWorked(source.insert(ids.map((i) => ({_id: i, x: i - 20, g: i % 4, k: 100 + i}))));

function run(coll, stages) {
    return coll.getDB().runCommand({aggregate: coll.getName(), pipeline: stages, cursor: {}});
}
function works(coll, stages) {
    const reply = assert.commandWorked(run(coll, stages));
    assert.eq([[], 0], [reply.cursor.firstBatch, Number(reply.cursor.id)], tojson(reply));
}
function sharded(name, key, middle) {
    const coll = testDB[name];
    coll.drop();
    shardByRanges(coll, key, [middle], [first, second]);
    return coll;
}

// By default a document is found by _id and shard key.
const target = sharded("target", {k: 1}, {k: 120});
works(source, [{$merge: "target"}]);
assert.eq([20, 20], [heldBy(target, first), heldBy(target, second)]);
assert.eq(ids, target.find().sort({_id: 1}).toArray().map((d) => d._id));
works(source, [{$project: {k: 1, g: {$literal: "m"}}}, {$merge: {into: "target", whenMatched: "merge"}}]);
assert.eq({_id: 3, k: 103, g: "m", x: -17}, target.findOne({_id: 3}));
works(source, [{$project: {k: 1, r: "$x"}}, {$merge: {into: "target", whenMatched: "replace", whenNotMatched: "discard"}}]);
assert.eq({_id: 30, k: 130, r: 10}, target.findOne({_id: 30}));
works(source, [{$set: {r: 0}}, {$merge: {into: "target", whenMatched: "keepExisting"}}]);
assert.eq(10, target.findOne({_id: 30}).r);
works(source, [{$merge: {into: "target", let: {by: "$g"}, whenMatched: [{$set: {sum: {$add: ["$r", "$$by", "$$new.k"]}}}]}}]);
assert.eq(10 + 2 + 130, target.findOne({_id: 30}).sum);
assert.eq(40, target.find().itcount());
const command = {aggregate: "source", let: {more: 5}, cursor: {}};
command.pipeline = [{$merge: {into: "target", whenMatched: [{$set: {more: {$add: ["$$more", "$r"]}}}]}}];
assert.commandWorked(testDB.runCommand(command));
assert.eq(15, target.findOne({_id: 30}).more);

// What fails keeps its codes.
assert.commandFailedWithCode(run(source, [{$merge: {into: "target", whenMatched: "fail"}}]), 11000);
const beyond = [{$set: {_id: {$add: ["$_id", 1000]}}}];
assert.commandFailedWithCode(run(source, [...beyond, {$merge: {into: "target", whenNotMatched: "fail"}}]), 13113);
assert.eq(40, target.find().itcount());
assert.commandFailedWithCode(run(source, [{$set: {k: [1]}}, {$merge: "target"}]), 51185);
assert.commandFailedWithCode(run(source, [{$merge: {into: "target", whenMatched: [{$set: {k: -1}}]}}]), ErrorCodes.ImmutableField);
assert.eq(103, target.findOne({_id: 3}).k);

// Other fields must have an index that makes them unique over all shards, so they hold the shard key.
assert.commandFailedWithCode(run(source, [{$merge: {into: "target", on: "_id"}}]), 51183);
assert.commandFailedWithCode(run(source, [{$merge: {into: "target", on: ["k", "u"]}}]), [51183, 51190]);
assert.commandWorked(target.createIndex({k: 1, u: 1}, {unique: true}));
works(source, [{$project: {_id: 0, k: 1, u: "$x", new: {$literal: 1}}}, {$merge: {into: "target", on: ["u", "k"]}}]);
assert.eq(80, target.find().itcount());
works(source, [{$project: {_id: 0, k: 1, u: "$x", new: {$literal: 2}}}, {$merge: {into: "target", on: ["u", "k"]}}]);
assert.eq([80, 40], [target.find().itcount(), target.find({new: 2}).itcount()]);

// A key that is missing is null; one without _id gets it.
const sparse = sharded("sparse", {m: 1}, {m: 0});
works(source, [{$match: {_id: {$lt: 3}}}, {$project: {g: 1}}, {$merge: "sparse"}]);
works(source, [{$match: {_id: {$lt: 3}}}, {$project: {g: {$literal: "twice"}}}, {$merge: "sparse"}]);
assert.eq([3, 0], [heldBy(sparse, first), heldBy(sparse, second)]);
assert.eq(3, sparse.find({g: "twice"}).itcount());
works(source, [{$match: {_id: {$lt: 3}}}, {$project: {_id: 0, m: "$k"}}, {$merge: "sparse"}]);
assert.eq([6, 3], [sparse.find().itcount(), heldBy(sparse, second)]);

// Hashed keys, groups, views, unsharded sources, sources without a collection.
const hashed = testDB.hashed;
assert.commandWorked(testDB.adminCommand({shardCollection: hashed.getFullName(), key: {h: "hashed"}}));
works(source, [{$group: {_id: "$g", h: {$first: "$g"}, n: {$sum: 1}}}, {$merge: "hashed"}]);
assert.eq([10, 10, 10, 10], hashed.find().toArray().map((d) => d.n));
assert.eq(4, [0, 1, 2, 3].reduce((n, h) => n + hashed.find({h: h}).itcount(), 0));
assert.commandWorked(testDB.createView("view", "source", [{$match: {g: 1, _id: {$gt: 3}}}]));
works(testDB.view, [{$set: {h: "$x", v: true}}, {$merge: "hashed"}]);
assert.eq(9, hashed.find({v: true}).itcount());
assert.commandWorked(testDB.plain.insert([{_id: 1, k: 150, p: 1}, {_id: 30, k: 50, p: 1}]));
works(testDB.plain, [{$merge: "target"}]);
assert.eq(2, target.find({p: 1}).itcount());
assert.commandWorked(testDB.runCommand({
    aggregate: 1, pipeline: [{$documents: [{_id: 1, k: 150, d: 1}, {_id: "d", k: 1, d: 1}]}, {$merge: "target"}], cursor: {},
}));
assert.docEq({_id: 1, k: 150, p: 1, d: 1}, target.findOne({_id: 1, k: 150}));
assert.eq(2, target.find({d: 1}).itcount());
works(source, [{$lookup: {from: "target", localField: "k", foreignField: "k", as: "found"}}, {$project: {k: 1, n: {$size: "$found"}}}, {$merge: "target"}]);
assert.gt(target.findOne({_id: 3}).n, 0);

// From sharded collections into others: both stages, here and in another database.
works(source, [{$match: {g: 0}}, {$merge: "gathered"}]);
works(source, [{$match: {g: 1}}, {$merge: {into: {db: "merge_into_sharded_other", coll: "gathered"}}}]);
assert.eq([10, 10], [testDB.gathered.find().itcount(), testDB.getSiblingDB("merge_into_sharded_other").gathered.find().itcount()]);
assert.commandWorked(testDB.replaced.insert({_id: "old"}));
assert.commandWorked(testDB.replaced.createIndex({k: 1}));
works(source, [{$match: {g: {$lt: 2}}}, {$out: "replaced"}]);
assert.eq([20, 0, 2], [testDB.replaced.find().itcount(), testDB.replaced.find({_id: "old"}).itcount(), testDB.replaced.getIndexes().length]);
works(source, [{$match: {g: 7}}, {$out: "replaced"}]);
assert.eq([0, 2], [testDB.replaced.find().itcount(), testDB.replaced.getIndexes().length]);
works(source, [{$out: {db: "merge_into_sharded_other", coll: "out"}}]);
assert.eq(40, testDB.getSiblingDB("merge_into_sharded_other").out.find().itcount());
const series = {db: testDB.getName(), coll: "series", timeseries: {timeField: "t", metaField: "g"}};
works(source, [{$project: {g: 1, t: {$toDate: {$multiply: ["$k", 1000]}}}}, {$out: series}]);
assert.eq(40, testDB.series.find().itcount());

// $out replaces nothing that is sharded, and leaves nothing beside its target when it fails.
assert.commandFailedWithCode(run(source, [{$out: "target"}]), 28769);
assert.commandFailedWithCode(run(testDB.plain, [{$out: "target"}]), 28769);
assert.commandFailedWithCode(run(source, [{$set: {_id: 1}}, {$out: "replaced"}]), 11000);
assert.commandFailedWithCode(run(source, [{$merge: "view"}]), ErrorCodes.CommandNotSupportedOnView);
assert.commandFailedWithCode(run(source, [{$merge: {into: "target", targetCollectionVersion: {t: Timestamp(1, 1), e: ObjectId(), v: Timestamp(1, 0)}}}]), [40415, 51179]);
assert.eq([], testDB.getCollectionNames().filter((name) => /tmp/.test(name)));
assert.commandWorked(testDB.getSiblingDB("merge_into_sharded_other").dropDatabase());
assert.commandWorked(testDB.dropDatabase());
