/**
 * A text search over shards is merged by the scores the documents have, whichever shard holds them.
 * Fails when a shard's documents are missed, scored anew after a projection, or merged in another order.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "text_over_shards", {x: 1}, [{x: 50}], [first, second]);
const alone = coll.getDB().alone;
const documents = [];
for (let i = 0; i < 100; i++) {
    documents.push({_id: i, x: i, t: "coffee ".repeat(i % 4) + "filler ".repeat(i % 7) + (i % 3 ? "tea" : "milk")});
}
for (const one of [coll, alone]) {
    assert.commandWorked(one.createIndex({t: "text"}));
    assert.commandWorked(one.insert(documents));
}
const score = {$meta: "textScore"};
const text = {$text: {$search: "coffee -milk"}};
const found = alone.find(text, {score: score}).sort({score: score, _id: 1}).toArray();
assert.gt(found.length, 20);
assert.eq(found, coll.find(text, {score: score}).sort({score: score, _id: 1}).toArray());
assert.eq(found.slice(3, 8).map(doc => doc._id), coll.find(text).sort({score: score, _id: 1}).skip(3).limit(5).toArray().map(doc => doc._id));
assert.eq(found.length, coll.count(text));
for (const pipeline of [
    [{$match: text}, {$sort: {s: score, _id: 1}}, {$limit: 9}, {$project: {s: score}}],
    [{$match: text}, {$group: {_id: "$x", s: {$sum: score}}}, {$sort: {_id: 1}}],
    [{$match: text}, {$project: {s: score}}, {$sort: {s: 1, _id: 1}}],
]) {
    assert.eq(alone.aggregate(pipeline).toArray(), coll.aggregate(pipeline).toArray(), tojson(pipeline));
}
assert.eq(1, coll.find({$text: {$search: "tea"}, x: 1}).itcount());
