/**
 * A sorted, limited or skipped find over several shards must answer what one node would answer.
 * It fails if the router skips on each shard, limits after merging the wrong way, or merges by the wrong order.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(
    db, "scatter_sort_limit_skip", {x: 1}, [{x: 25}, {x: 50}, {x: 75}], [first, second, first, second]);
const testDB = coll.getDB();
const documents = [];
for (let i = 0; i < 100; i++) {
    documents.push({_id: i, x: i, a: i % 7, b: (i * 37) % 101, s: {t: 100 - i}});
}
assert.commandWorked(coll.insert(documents));

function sorted(spec) {
    const fields = Object.entries(spec);
    const value = (d, path) => path.split(".").reduce((v, part) => v[part], d);
    return documents.slice().sort((l, r) => {
        for (const [path, direction] of fields) {
            const difference = value(l, path) - value(r, path);
            if (difference !== 0) {
                return difference * direction;
            }
        }
        return 0;
    });
}

for (const spec of [{x: 1}, {x: -1}, {a: 1, b: 1}, {a: -1, b: 1}, {b: -1}, {"s.t": 1}, {_id: -1}]) {
    const expected = sorted(spec);
    for (const batch of [2, 3, 7, 1000]) {
        assert.eq(expected, coll.find().sort(spec).batchSize(batch).toArray(), tojson({spec, batch}));
    }
    for (const [skip, limit] of [[0, 1], [0, 10], [5, 10], [95, 10], [99, 1], [100, 5], [30, 0]]) {
        const part = limit ? expected.slice(skip, skip + limit) : expected.slice(skip);
        assert.eq(part, coll.find().sort(spec).skip(skip).limit(limit).toArray(), tojson({spec, skip, limit}));
        assert.eq(part, coll.find().sort(spec).skip(skip).limit(limit).batchSize(2).toArray());
    }
}

// The sort field need not be in the answer, and the merge leaves nothing of itself behind.
const projected = coll.find({}, {_id: 0, a: 1}).sort({b: 1}).limit(3).toArray();
assert.eq(sorted({b: 1}).slice(0, 3).map((d) => ({a: d.a})), projected);

// Without an order any documents may come, but just so many and each once.
assert.eq(10, coll.find().limit(10).itcount());
assert.eq(90, coll.find().skip(10).itcount());
assert.eq(100, new Set(coll.find().batchSize(3).toArray().map((d) => d._id)).size);
assert.eq(5, coll.find().limit(-5).itcount(), "a negative limit is one batch");

// Missing and null sort first and alike; arrays by their least element.
assert.commandWorked(coll.insert([{_id: "n", x: 10, b: null}, {_id: "m", x: 60}, {_id: "l", x: 90, b: [-5, 500]}]));
assert.sameMembers(["n", "m"], coll.find().sort({b: 1}).limit(2).toArray().map((d) => d._id));
assert.eq("l", coll.find().sort({b: 1}).skip(2).next()._id);
assert.eq("l", coll.find().sort({b: -1}).limit(1).next()._id);
assert.commandWorked(testDB.dropDatabase());
