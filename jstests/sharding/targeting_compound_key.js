/**
 * A compound shard key is ordered field by field, so a filter on a prefix of it names a range and can be targeted.
 * It fails if the router demands the whole key, or treats a condition on a later field alone as a range.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(
    db, "targeting_compound_key", {tenant: 1, n: 1}, [{tenant: "b", n: 0}, {tenant: "b", n: 10}, {tenant: "c", n: MinKey}],
    [first, first, second, second]);
const testDB = coll.getDB();
const documents = [];
for (const tenant of ["a", "b", "c"]) {
    for (let n = -5; n < 15; n++) {
        documents.push({tenant: tenant, n: n});
    }
}
assert.commandWorked(coll.insert(documents));

function visits(filter, expected, found) {
    assert.eq(expected.slice().sort(), shardsInPlan(coll.find(filter).explain()), tojson(filter));
    assert.eq(found, coll.find(filter).itcount(), tojson(filter));
}

visits({tenant: "a"}, [first], 20);
visits({tenant: "c"}, [second], 20);
visits({tenant: "b"}, [first, second], 20);
visits({tenant: "b", n: 3}, [first], 1);
visits({tenant: "b", n: 10}, [second], 1);
visits({tenant: "b", n: {$lt: 10}}, [first], 15);
visits({tenant: "b", n: {$gte: 10}}, [second], 5);
visits({tenant: "b", n: {$gte: 9}}, [first, second], 6);
visits({tenant: {$lte: "a"}}, [first], 20);
visits({tenant: {$gte: "c"}}, [second], 20);
visits({tenant: {$in: ["a", "b"]}, n: 0}, [first], 2);

// Without the first field every shard may hold a match.
visits({n: 3}, [first, second], 3);
visits({n: {$gte: 10}}, [first, second], 15);
assert.commandWorked(testDB.dropDatabase());
