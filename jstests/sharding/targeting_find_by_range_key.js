/**
 * A find that names the shard key must ask only the shards that own matching ranges, or clusters do not scale.
 * It fails if the router ignores the filter's bounds when it chooses shards, or takes an upper bound as inclusive.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "targeting_find_by_range_key", {x: 1}, [{x: 0}, {x: 100}], [first, second, first]);
const testDB = coll.getDB();
for (let x = -20; x <= 120; x += 10) {
    assert.commandWorked(coll.insert({x: x}));
}

function visits(filter, expected, found) {
    const explained = coll.find(filter).explain();
    assert.eq(expected.slice().sort(), shardsInPlan(explained), tojson(filter));
    assert.eq(found, coll.find(filter).itcount(), tojson(filter));
}

visits({x: -10}, [first], 1);
visits({x: 0}, [second], 1);
visits({x: 99.5}, [second], 0);
visits({x: 100}, [first], 1);
visits({x: {$gte: 0, $lt: 95}}, [second], 10);
visits({x: {$gte: 0, $lt: 100}}, [second], 10);
visits({x: {$gt: 0, $lt: 50}}, [second], 4);
visits({x: {$lt: -5}}, [first], 2);
visits({x: {$lt: 0}}, [first], 2);
visits({x: {$lte: 0}}, [first, second], 3);
visits({x: {$gte: 100}}, [first], 3);
visits({x: {$in: [10, 20]}}, [second], 2);
visits({x: {$in: [-10, 110]}}, [first], 2);
visits({x: {$in: [-10, 10]}}, [first, second], 2);
visits({x: {$gte: 90, $lte: 110}}, [first, second], 3);
visits({}, [first, second], 15);
visits({y: 5}, [first, second], 0);
visits({x: {$exists: true}, y: {$exists: false}}, [first, second], 15);

// An equality decides though other conditions stand beside it.
visits({x: 30, y: {$exists: false}}, [second], 1);
visits({$and: [{x: {$gte: 10}}, {x: {$lte: 20}}]}, [second], 2);
visits({$or: [{x: 10}, {x: 20}]}, [second], 2);
visits({$or: [{x: 10}, {x: -10}]}, [first, second], 2);
visits({$or: [{x: 10}, {y: 1}]}, [first, second], 1);
assert.commandWorked(testDB.dropDatabase());
