/**
 * $rankFusion merges the documents of several ordered pipelines by the sum of weight / (60 + rank) over the pipelines that found them.
 * Fails when equal sort keys get different ranks, a weight or a missing rank is counted wrongly, or a pipeline may change documents.
 */
const t = db.rank_fusion;
t.drop();
assert.commandWorked(t.insert([{_id: 1, a: 30, b: 10}, {_id: 2, a: 20, b: 30}, {_id: 3, a: 10, b: 20}, {_id: 4, a: 10}]));
const fuse = (pipelines, more, then = [{$project: {_id: 1, s: {$meta: "score"}}}]) =>
    [{$rankFusion: Object.assign({input: {pipelines}}, more)}].concat(then);
const byA = [{$sort: {a: -1}}], byB = [{$match: {b: {$exists: true}}}, {$sort: {b: -1}}];
const at = (...ranks) => ranks.reduce((sum, rank) => sum + 1 / (60 + rank), 0);
function check(expected, pipeline) {
    const got = t.aggregate(pipeline).toArray();
    assert.eq(expected.map(([id]) => id), got.map((d) => d._id), tojson(got));
    got.forEach((d, i) => assert.close(expected[i][1], d.s, tojson(got), 9));
}
check([[2, at(2, 1)], [1, at(1, 3)], [3, at(3, 2)], [4, at(3)]], fuse({a: byA, b: byB}));
check([[1, 2 * at(1) + at(3)], [2, 2 * at(2) + at(1)], [3, 2 * at(3) + at(2)], [4, 2 * at(3)]],
      fuse({a: byA, b: byB}, {combination: {weights: {a: 2}}}));
check([[2, at(1)], [3, at(2)], [4, at(2)]], fuse({a: byA.concat({$skip: 1})}));

// The documents are as they were, and what is asked for by $meta may be used anywhere behind.
assert.eq([{_id: 1, a: 30, b: 10}], t.aggregate(fuse({a: byA}, {}, [{$limit: 1}])).toArray());
assert.eq([{_id: 1, a: 30, b: 10, more: true}],
          t.aggregate(fuse({a: byA}, {}, [{$set: {more: {$gt: [{$meta: "score"}, 0.0163]}}}, {$match: {more: true}}])).toArray());
const details = t.aggregate(fuse({a: byA, b: byB}, {scoreDetails: true}, [{$match: {_id: 4}}, {$project: {d: {$meta: "scoreDetails"}}}])).toArray();
assert.eq([{inputPipelineName: "a", rank: 3, weight: 1, details: []}, {inputPipelineName: "b", rank: "NA"}], details[0].d.details);
assert.close(at(3), details[0].d.value, "", 9);
assert.eq(2, t.aggregate([{$match: {_id: {$lt: 3}}}, {$lookup: {from: t.getName(), pipeline: fuse({a: byA}), as: "all"}}]).toArray()[0].all.filter((d) => d.s >= at(2)).length);
const view = db.rank_fusion_view;
view.drop();
assert.commandWorked(db.createView(view.getName(), t.getName(), [{$match: {_id: {$gt: 1}}}]));
assert.eq([2, 3, 4], view.aggregate(fuse({a: byA, again: byA})).toArray().map((d) => d._id));
assert(view.drop());

const fails = (code, pipeline) =>
    assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), pipeline, cursor: {}}), code, tojson(pipeline));
fails(10170100, [{$match: {}}].concat(fuse({a: byA})));
fails(9191100, fuse({a: [{$match: {a: 1}}]}));
fails(9191103, fuse({a: byA.concat({$project: {a: 1}})}));
fails(9834300, fuse({a: []}));
fails(10473002, fuse({a: fuse({a: byA}, {}, [])}));
fails(9460300, fuse({a: byA}, {combination: {weights: {a: -1}}}));
fails(9460301, fuse({a: byA}, {combination: {weights: {a: 1, b: 1}}}));
fails(9967500, fuse({a: byA}, {combination: {weights: {b: 1}}}));
fails(13118, fuse({a: byA}, {combination: {weights: {a: "1"}}}));
fails(40218, fuse({a: byA}, {}, [{$project: {d: {$meta: "scoreDetails"}}}]));
fails(40414, [{$rankFusion: {}}]);
// Measurements have no rank.
const series = db.rank_fusion_series;
series.drop();
assert.commandWorked(db.createCollection(series.getName(), {timeseries: {timeField: "t"}}));
assert.commandFailedWithCode(db.runCommand({aggregate: series.getName(), pipeline: fuse({a: byA}), cursor: {}}), 10557301);
fails(40415, [{$rankFusion: {input: {pipelines: {a: byA}}, more: 1}}]);
// What the server writes for it is no client's to ask for.
for (const own of [{$_internalRank: {pipeline: 0}}, {$_internalFuse: {names: ["a"], weights: [1]}}]) {
    fails(40324, [own]);
    fails(40324, [{$unionWith: {coll: t.getName(), pipeline: [own]}}]);
    fails(40324, [{$facet: {a: [{$lookup: {from: t.getName(), pipeline: [own], as: "m"}}]}}]);
    assert.commandFailedWithCode(db.createView("rank_fusion_view", t.getName(), [own]), 40324);
}
