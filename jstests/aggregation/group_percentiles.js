/**
 * $percentile and $median estimate where values lie, in groups and within arrays.
 * Fails when a percentile is no value of the input, non-numbers are counted, or an invalid probability or method is taken.
 */
const coll = db.group_percentiles;
coll.drop();
assert.commandWorked(coll.insert([...Array(100).keys()].map(i => ({_id: i, v: i + 1, g: i % 2}))));
assert.commandWorked(coll.insert([{_id: 100, v: "text", g: 0}, {_id: 101, g: 1}, {_id: 102, v: null, g: 2}]));

function group(accumulator) {
    return coll.aggregate([{$group: {_id: "$g", r: accumulator}}, {$sort: {_id: 1}}]).toArray().map(doc => doc.r);
}
const quartiles = group({$percentile: {input: "$v", p: [0, 0.5, 1], method: "approximate"}});
assert.eq([1, 49, 99], quartiles[0]);
assert.eq([2, 50, 100], quartiles[1]);
assert.eq([null, null, null], quartiles[2]);
assert.eq([49, 50, null], group({$median: {input: "$v", method: "approximate"}}));

// Over an array, within one document.
const expression = {$project: {
    _id: 0,
    p: {$percentile: {input: [10, 40, "x", 20, 30], p: [0.25, 0.75], method: "approximate"}},
    m: {$median: {input: [5, 1, 9], method: "approximate"}},
    none: {$median: {input: [], method: "approximate"}},
}};
assert.eq({p: [10, 30], m: 5, none: null}, coll.aggregate([{$match: {_id: 0}}, expression]).toArray()[0]);

function refused(codes, accumulator) {
    const pipeline = [{$group: {_id: null, r: accumulator}}];
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(accumulator));
}
refused(7429703, {$percentile: 1});
refused(7750301, {$percentile: {input: "$v", p: [], method: "approximate"}});
refused(7750303, {$percentile: {input: "$v", p: [1.5], method: "approximate"}});
refused([7750300, 7750301], {$percentile: {input: "$v", p: 0.5, method: "approximate"}});
refused([7750302, 7750301], {$percentile: {input: "$v", p: ["x"], method: "approximate"}});
refused(ErrorCodes.BadValue, {$percentile: {input: "$v", p: [0.5], method: "guess"}});
refused(40414, {$median: {input: "$v"}});
refused(40414, {$median: {method: "approximate"}});
refused([40415], {$median: {input: "$v", method: "approximate", p: [0.5]}});
