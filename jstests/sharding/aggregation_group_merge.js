/**
 * Accumulators are computed in part on each shard and put together afterwards; the answer is that of one node.
 * It fails if a partial average, set, or first/last is merged as if it were a final value.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "aggregation_group_merge", {x: 1}, [{x: 30}, {x: 60}], [first, second, first]);
const testDB = coll.getDB();
const alone = testDB.alone;
const documents = [];
for (let i = 0; i < 100; i++) {
    documents.push({_id: i, x: i, g: i % 3, v: i * i % 17, tags: [i % 2, i % 5], name: "n" + i % 4});
}
assert.commandWorked(coll.insert(documents));
assert.commandWorked(alone.insert(documents));

function same(pipeline) {
    assert.eq(alone.aggregate(pipeline).toArray(), coll.aggregate(pipeline).toArray(), tojson(pipeline));
    assert.eq(alone.aggregate(pipeline).toArray(),
              coll.aggregate(pipeline, {allowDiskUse: true, cursor: {batchSize: 2}}).toArray());
}

const byId = {$sort: {_id: 1}};
same([{$group: {_id: "$g", n: {$sum: 1}, s: {$sum: "$v"}, a: {$avg: "$v"}, lo: {$min: "$v"}, hi: {$max: "$x"}}}, byId]);
same([{$sort: {x: 1}}, {$group: {_id: "$g", f: {$first: "$x"}, l: {$last: "$x"}, all: {$push: "$v"}}}, byId]);
same([{$group: {_id: {g: "$g", n: "$name"}, n: {$count: {}}}}, byId]);
same([{$group: {_id: null, deviation: {$stdDevPop: "$v"}}}, {$project: {d: {$round: ["$deviation", 8]}}}]);
same([{$group: {_id: "$g", top: {$topN: {n: 2, sortBy: {v: -1, x: 1}, output: "$x"}}}}, byId]);
same([{$group: {_id: "$g", names: {$addToSet: "$name"}}}, {$project: {names: {$sortArray: {input: "$names", sortBy: 1}}}}, byId]);
same([{$unwind: "$tags"}, {$group: {_id: "$tags", n: {$sum: 1}}}, byId]);
same([{$sortByCount: "$g"}, {$sort: {count: -1, _id: 1}}]);
same([{$bucket: {groupBy: "$v", boundaries: [0, 5, 10, 20], output: {n: {$sum: 1}}}}]);
same([{$match: {v: {$gt: 3}}}, {$count: "n"}]);
same([{$match: {x: {$gte: 30, $lt: 60}}}, {$group: {_id: "$g", n: {$sum: 1}}}, byId]);
same([{$group: {_id: "$g", n: {$sum: 1}}}, {$group: {_id: null, m: {$max: "$n"}}}]);
same([{$match: {x: -1}}, {$group: {_id: null, n: {$sum: 1}}}]);
same([{$group: {_id: "$g", n: {$sum: {$cond: [{$gt: ["$v", 8]}, 1, 0]}}}}, {$match: {n: {$gt: 0}}}, byId]);
same([{$facet: {low: [{$match: {v: {$lt: 5}}}, {$count: "n"}], all: [{$group: {_id: null, s: {$sum: "$x"}}}]}}]);

// A group by the shard key needs no second step, and its answer is the same.
same([{$group: {_id: "$x", n: {$sum: 1}}}, byId]);
assert.commandWorked(testDB.dropDatabase());
