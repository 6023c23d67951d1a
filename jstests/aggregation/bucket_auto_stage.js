/**
 * $bucketAuto finds boundaries that spread documents evenly.
 * Fails when equal values fall into two buckets, the buckets are far from even, or the bounds leave gaps.
 */
const coll = db.bucket_auto_stage;
coll.drop();
assert.commandWorked(coll.insert([...Array(100).keys()].map(i => ({_id: i, v: i, g: i < 90 ? 1 : i}))));

function run(spec) {
    return coll.aggregate([{$bucketAuto: spec}]).toArray();
}
assert.eq([
    {_id: {min: 0, max: 25}, count: 25},
    {_id: {min: 25, max: 50}, count: 25},
    {_id: {min: 50, max: 75}, count: 25},
    {_id: {min: 75, max: 99}, count: 25},
], run({groupBy: "$v", buckets: 4}));

// Ninety equal values stay together.
const skewed = run({groupBy: "$g", buckets: 5});
assert.eq({_id: {min: 1, max: 90}, count: 90}, skewed[0]);
assert.eq(100, skewed.reduce((sum, bucket) => sum + bucket.count, 0));
for (let i = 1; i < skewed.length; i++) {
    assert.eq(skewed[i - 1]._id.max, skewed[i]._id.min);
}
const outputs = run({groupBy: "$v", buckets: 2, output: {n: {$sum: 1}, top: {$max: "$v"}}});
assert.eq([{_id: {min: 0, max: 50}, n: 50, top: 49}, {_id: {min: 50, max: 99}, n: 50, top: 99}], outputs);
assert.lte(run({groupBy: "$v", buckets: 1000}).length, 100);

// Preferred numbers round the bounds.
assert.eq([0, 63, 100], (buckets => [buckets[0]._id.min, buckets[0]._id.max, buckets[1]._id.max])(run({groupBy: "$v", buckets: 2, granularity: "R5"})));
const powers = run({groupBy: {$add: ["$v", 1]}, buckets: 3, granularity: "POWERSOF2"});
for (const bucket of powers) {
    assert.eq(0, Math.log2(bucket._id.max) % 1, () => tojson(powers));
}

function refused(codes, spec) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$bucketAuto: spec}], cursor: {}}), codes, () => tojson(spec));
}
refused(40240, 1);
refused(40246, {groupBy: "$v"});
refused(40246, {buckets: 2});
refused(40239, {groupBy: "v", buckets: 2});
refused(40241, {groupBy: "$v", buckets: "2"});
refused(40242, {groupBy: "$v", buckets: 1.5});
refused(40243, {groupBy: "$v", buckets: 0});
refused(40244, {groupBy: "$v", buckets: 2, output: 1});
refused(40245, {groupBy: "$v", buckets: 2, unheardOf: 1});
refused(40261, {groupBy: "$v", buckets: 2, granularity: 1});
refused(40257, {groupBy: "$v", buckets: 2, granularity: "R7"});
refused(40260, {groupBy: {$literal: -1}, buckets: 2, granularity: "R5"});
