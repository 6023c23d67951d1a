/**
 * Sorted streams of the shards are merged, and limits reach the shards, so that nobody sends more than is needed.
 * It fails if the merge order is wrong, a limit is applied before a later match, or a limit never reaches the shards.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "aggregation_sort_limit", {x: 1}, [{x: 50}], [first, second]);
const testDB = coll.getDB();
const alone = testDB.alone;
const documents = [];
for (let i = 0; i < 100; i++) {
    documents.push({_id: i, x: i, v: (i * 31) % 100, w: i % 10});
}
assert.commandWorked(coll.insert(documents));
assert.commandWorked(alone.insert(documents));

const pipelines = [
    [{$sort: {v: 1}}],
    [{$sort: {v: -1}}, {$limit: 7}],
    [{$sort: {v: 1}}, {$skip: 5}, {$limit: 7}],
    [{$sort: {w: 1, v: -1}}, {$limit: 15}, {$match: {v: {$gt: 40}}}],
    [{$sort: {v: 1}}, {$limit: 20}, {$sort: {x: 1}}, {$limit: 3}],
    [{$sort: {v: 1}}, {$limit: 20}, {$group: {_id: null, s: {$sum: "$v"}}}],
    [{$match: {w: 3}}, {$sort: {v: 1}}, {$project: {_id: 0, v: 1}}],
    [{$project: {v: 1}}, {$sort: {v: 1}}, {$skip: 95}],
    [{$addFields: {z: {$subtract: [0, "$v"]}}}, {$sort: {z: 1}}, {$limit: 2}],
    [{$sort: {v: 1}}, {$limit: 10}, {$unwind: "$w"}, {$sort: {_id: 1}}],
    [{$skip: 100}],
    [{$sort: {v: 1}}, {$replaceRoot: {newRoot: {v: "$v"}}}, {$limit: 4}],
];
for (const pipeline of pipelines) {
    const expected = alone.aggregate(pipeline).toArray();
    assert.eq(expected, coll.aggregate(pipeline).toArray(), tojson(pipeline));
    assert.eq(expected, coll.aggregate(pipeline, {cursor: {batchSize: 1}}).toArray(), tojson(pipeline));
}
assert.eq(10, coll.aggregate([{$limit: 10}]).itcount());
assert.eq(5, coll.aggregate([{$sample: {size: 5}}]).itcount());

// No shard sends more than the limit lets through.
const shards = [first, second].map((name) => shardConnection(db, name).getDB(testDB.getName()));
const sent = () => shards.map((shard) => {
    const executed = shard.system.profile.find({ns: coll.getFullName(), nreturned: {$gt: 0}}).toArray();
    return executed.reduce((n, op) => n + op.nreturned, 0);
});
shards.forEach((shard) => assert.commandWorked(shard.setProfilingLevel(2)));
for (const [most, pipeline] of [
         [3, [{$limit: 3}]],
         [3, [{$sort: {v: 1}}, {$limit: 3}]],
         [5, [{$sort: {v: 1}}, {$skip: 2}, {$limit: 3}]],
         [5, [{$skip: 2}, {$limit: 3}]],
         [4, [{$match: {w: {$gt: 1}}}, {$project: {v: 1}}, {$limit: 4}, {$match: {v: {$gte: 0}}}]],
     ]) {
    const before = sent();
    assert.eq(pipeline.find((stage) => stage.$limit).$limit, coll.aggregate(pipeline).itcount(), tojson(pipeline));
    sent().forEach((n, i) => {
        assert.between(1, n - before[i], most, `${shards[i].getMongo().host}: ${tojson(pipeline)}`);
    });
}
shards.forEach((shard) => assert.commandWorked(shard.setProfilingLevel(0)));

// The limit is among what the shards execute.
const explained = coll.explain().aggregate([{$sort: {v: 1}}, {$limit: 3}]);
assert.eq(2, Object.keys(explained.shards).length);
assert(tojson(explained.splitPipeline.shardsPart).includes("3"), tojson(explained.splitPipeline));
assert.commandWorked(testDB.dropDatabase());
