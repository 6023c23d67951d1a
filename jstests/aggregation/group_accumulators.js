/**
 * $group folds many documents into one a key, by accumulators.
 * Fails when an accumulator counts a missing or unfit value, rounds where it should not, or gives another type.
 */
const coll = db.group_accumulators;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, k: "x", n: 4, s: "b", o: {p: 1}},
    {_id: 1, k: "x", n: NumberInt(2), s: "a", o: {q: 2}},
    {_id: 2, k: "x", n: "text", o: {p: 3}},
    {_id: 3, k: "x", n: 6, s: "b"},
    {_id: 4, k: "y", n: null},
    {_id: 5, k: "y"},
]));

function group(accumulator) {
    const result = coll.aggregate([{$sort: {_id: 1}}, {$group: {_id: "$k", r: accumulator}}, {$sort: {_id: 1}}]).toArray();
    assert.eq(["x", "y"], result.map(doc => doc._id));
    return result.map(doc => doc.r);
}
assert.eq([12, 0], group({$sum: "$n"}));
assert.eq([4, 2], group({$sum: 1}));
assert.eq([4, 2], group({$count: {}}));
assert.eq([4, null], group({$avg: "$n"}));
assert.eq([2, null], group({$min: "$n"}));
assert.eq(["text", null], group({$max: "$n"}));
assert.eq(["a", null], group({$min: "$s"}));
assert.eq([4, null], group({$first: "$n"}));
assert.eq([6, null], group({$last: "$n"}));
assert.eq([["b", "a", "b"], []], group({$push: "$s"}));
assert.eq([[{v: 4}, {v: 2}, {v: "text"}, {v: 6}], [{v: null}, {}]], group({$push: {v: "$n"}}));
const sets = group({$addToSet: "$s"});
assert.sameMembers(["a", "b"], sets[0]);
assert.eq([], sets[1]);
assert.eq([{p: 3, q: 2}, {}], group({$mergeObjects: "$o"}));
const deviation = group({$stdDevPop: "$n"});
assert.close(Math.sqrt(8 / 3), deviation[0]);
assert.eq(null, deviation[1]);
assert.close(2, group({$stdDevSamp: "$n"})[0]);

function refused(codes, accumulator) {
    const pipeline = [{$group: {_id: "$k", r: accumulator}}];
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(accumulator));
}
refused(15952, {$unheardOf: 1});
refused(40234, "$n");
refused(40238, {$sum: 1, $avg: 1});
refused(40237, {$sum: ["$n", 1]});
refused([ErrorCodes.TypeMismatch, ErrorCodes.FailedToParse], {$count: 1});
refused([40400, 5911200], {$mergeObjects: "$s"});
