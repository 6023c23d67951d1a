/**
 * $firstN, $lastN, $minN, $maxN, $topN, $bottomN and their single forms keep the best few of each group.
 * Fails when one keeps another number, another order, or counts missing values where it should not.
 */
const coll = db.group_top_and_first_n;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, team: "a", who: "ann", score: 5},
    {_id: 1, team: "a", who: "bob", score: 9},
    {_id: 2, team: "a", who: "cid", score: 7},
    {_id: 3, team: "a", who: "dan"},
    {_id: 4, team: "b", who: "eve", score: 1},
]));

function group(accumulator) {
    return coll.aggregate([{$sort: {_id: 1}}, {$group: {_id: "$team", r: accumulator}}, {$sort: {_id: 1}}]).toArray().map(doc => doc.r);
}
assert.eq([["ann", "bob"], ["eve"]], group({$firstN: {input: "$who", n: 2}}));
assert.eq([["cid", "dan"], ["eve"]], group({$lastN: {input: "$who", n: 2}}));
assert.eq([[5, 7], [1]], group({$minN: {input: "$score", n: 2}}));
assert.eq([[9, 7], [1]], group({$maxN: {input: "$score", n: 2}}));
assert.eq([[9, 7, 5], [1]], group({$maxN: {input: "$score", n: 10}}));
assert.eq([[7, null], [1]], group({$lastN: {input: "$score", n: 2}}));
assert.eq([["bob", "cid"], ["eve"]], group({$topN: {output: "$who", sortBy: {score: -1}, n: 2}}));
assert.eq([["ann", "dan"], ["eve"]], group({$bottomN: {output: "$who", sortBy: {score: -1}, n: 2}}));
assert.eq(["bob", "eve"], group({$top: {output: "$who", sortBy: {score: -1}}}));
assert.eq(["dan", "eve"], group({$bottom: {output: "$who", sortBy: {who: 1}}}));

// The number may depend on the group's key.
const two = {$firstN: {input: "$who", n: {$cond: [{$eq: ["$team", "a"]}, 3, 1]}}};
const numbered = coll.aggregate([{$sort: {_id: 1}}, {$group: {_id: {team: "$team"}, r: two}}, {$sort: {_id: 1}}]);
assert.eq([["ann", "bob", "cid"], ["eve"]], numbered.toArray().map(doc => doc.r));

function refused(codes, accumulator) {
    const pipeline = [{$group: {_id: "$team", r: accumulator}}];
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(accumulator));
}
refused(5787801, {$firstN: 1});
refused(5787900, {$maxN: 1});
refused(5787906, {$firstN: {input: "$who"}});
refused(5787907, {$firstN: {n: 1}});
refused(5787901, {$firstN: {input: "$who", n: 1, more: 1}});
refused([5787908, 7548606], {$minN: {input: "$score", n: 0}});
refused([5787908, 7548606], {$minN: {input: "$score", n: -1}});
refused([5787902, 5787903, 7548606], {$minN: {input: "$score", n: "2"}});
refused([5787903, 7548606], {$minN: {input: "$score", n: 1.5}});
refused(5788001, {$topN: 1});
refused([5788002, 5788003, 5788005], {$topN: {n: 1, output: "$who"}});
refused([5788003, 5788004, 5788002], {$topN: {n: 1, sortBy: {score: 1}}});
refused([5788002, 5788004], {$top: {output: "$who", sortBy: {score: 1}, n: 1}});
