/**
 * $redact prunes documents by their own contents, $sample picks some at random.
 * Fails when a pruned part shows, a kept part vanishes, or a sample repeats documents or has another size.
 */
const coll = db.redact_and_sample;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 1, level: 1, a: {level: 5, secret: 1}, b: {level: 2, open: 1, c: {level: 9}}, l: [{level: 1, x: 1}, {level: 7, x: 2}, 3]},
    {_id: 2, level: 8, a: 1},
    {_id: 3, level: 2},
]));

function redact(expression) {
    return coll.aggregate([{$redact: expression}, {$sort: {_id: 1}}]).toArray();
}
const pruned = redact({$cond: [{$lte: ["$level", 3]}, "$$DESCEND", "$$PRUNE"]});
assert.eq([{_id: 1, level: 1, b: {level: 2, open: 1}, l: [{level: 1, x: 1}, 3]}, {_id: 3, level: 2}], pruned);
assert.eq([1, 3], redact({$cond: [{$lte: ["$level", 3]}, "$$KEEP", "$$PRUNE"]}).map(doc => doc._id));
assert.eq({level: 5, secret: 1}, redact({$cond: [{$lte: ["$level", 3]}, "$$KEEP", "$$PRUNE"]})[0].a);
assert.eq([], redact("$$PRUNE"));
assert.eq(3, redact("$$KEEP").length);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$redact: "no"}], cursor: {}}), 17053);

coll.drop();
assert.commandWorked(coll.insert([...Array(200).keys()].map(i => ({_id: i}))));
for (const size of [1, 5, 50]) {
    const ids = coll.aggregate([{$sample: {size: size}}]).toArray().map(doc => doc._id);
    assert.eq(size, ids.length);
    assert.eq(size, new Set(ids).size, () => tojson(ids));
}
assert.eq(200, coll.aggregate([{$sample: {size: 1000}}]).itcount());
const orders = new Set();
for (let i = 0; i < 20; i++) {
    orders.add(tojson(coll.aggregate([{$sample: {size: 4}}]).toArray()));
}
assert.lt(1, orders.size);
function refused(codes, sample) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$sample: sample}], cursor: {}}), codes, () => tojson(sample));
}
refused(28745, 1);
refused(28746, {size: "1"});
refused(28747, {size: -1});
refused(28748, {sized: 1});
refused(28749, {});
