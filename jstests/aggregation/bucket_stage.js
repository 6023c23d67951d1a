/**
 * $bucket sorts documents into ranges with given boundaries.
 * Fails when a lower bound is excluded, an upper one included, a value outside is lost in silence, or unordered boundaries are taken.
 */
const coll = db.bucket_stage;
coll.drop();
assert.commandWorked(coll.insert([0, 5, 9.99, 10, 15, 20, 99].map((v, i) => ({_id: i, v: v}))));

function run(bucket) {
    return coll.aggregate([{$sort: {_id: 1}}, {$bucket: bucket}]).toArray();
}
assert.eq([{_id: 0, count: 3}, {_id: 10, count: 2}, {_id: 20, count: 2}], run({groupBy: "$v", boundaries: [0, 10, 20, 100]}));
assert.eq([{_id: 0, count: 3}, {_id: 10, count: 2}, {_id: "rest", count: 2}], run({groupBy: "$v", boundaries: [0, 10, 20], default: "rest"}));
assert.eq([{_id: 0, n: 3, vs: [0, 5, 9.99]}, {_id: 10, n: 4, vs: [10, 15, 20, 99]}],
          run({groupBy: "$v", boundaries: [0, 10, 1000], output: {n: {$sum: 1}, vs: {$push: "$v"}}}));
assert.eq([{_id: 0, count: 3}, {_id: 1, count: 4}], run({groupBy: {$floor: {$divide: ["$v", 10]}}, boundaries: [0, 1, 100]}));
// Empty buckets are not shown.
assert.eq([{_id: 90, count: 1}, {_id: "other", count: 6}], run({groupBy: "$v", boundaries: [50, 90, 100], default: "other"}));
assert.eq([{_id: -5, count: 1}, {_id: 1, count: 6}], run({groupBy: "$v", boundaries: [1, 100], default: -5}));

function refused(codes, bucket) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$bucket: bucket}], cursor: {}}), codes, () => tojson(bucket));
}
// A value outside without a default.
refused(40066, {groupBy: "$v", boundaries: [0, 10]});
refused(40201, 1);
refused(40198, {groupBy: "$v"});
refused(40198, {boundaries: [0, 1]});
refused(40202, {groupBy: "v", boundaries: [0, 1]});
refused(40200, {groupBy: "$v", boundaries: 5});
refused(40192, {groupBy: "$v", boundaries: [0]});
refused(40193, {groupBy: "$v", boundaries: [0, "a"]});
refused(40194, {groupBy: "$v", boundaries: [5, 1]});
refused(40194, {groupBy: "$v", boundaries: [1, 1]});
refused(40191, {groupBy: "$v", boundaries: [0, "$v"]});
refused(40199, {groupBy: "$v", boundaries: [0, 10], default: 5});
refused(40195, {groupBy: "$v", boundaries: [0, 10], default: "$v"});
refused(40196, {groupBy: "$v", boundaries: [0, 10], output: 1});
refused(40197, {groupBy: "$v", boundaries: [0, 10], unheardOf: 1});
