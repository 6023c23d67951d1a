/**
 * $score computes a number for each document, normalised and weighed, and $scoreFusion merges the documents of several pipelines by their scores.
 * Fails when a normalisation is counted wrongly, a $score hides that of an earlier one too late, a fused document changes or comes twice, a score that
 * is missing does not count as 0, or a malformed argument passes.
 */
const t = db.score_fusion;
t.drop();
assert.commandWorked(t.insert([{_id: 1, a: 30, b: 10}, {_id: 2, a: 20, b: 30}, {_id: 3, a: 10, b: 20}, {_id: 4, a: 40}]));
const run = (...pipeline) => t.aggregate(pipeline).toArray();
const s = {$meta: "score"}, show = {$project: {s}}, byId = {$sort: {_id: 1}};
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
function check(expected, got) {
    assert.eq(expected.map(([id]) => id), got.map((d) => d._id), tojson(got));
    got.forEach((d, i) => assert.close(expected[i][1], d.s, tojson(got), 9));
}

// $score alone.
const small = {$divide: ["$a", 10]};
check([[1, 3], [2, 2], [3, 1], [4, 4]], run(byId, {$score: {score: small}}, show));
check([[4, 2], [1, 1.5], [2, 1], [3, 0.5]], run({$score: {score: small, weight: 0.5}}, {$sort: {x: s}}, show));
check([1, 2, 3, 4].map((id) => [id, sigmoid([3, 2, 1, 4][id - 1]) / 2]), run(byId, {$score: {score: small, normalization: "sigmoid", weight: 0.5}}, show));
check([[1, 2 / 3], [2, 1 / 3], [3, 0], [4, 1]], run({$score: {score: "$a", normalization: "minMaxScaler"}}, byId, show));
check([[3, 0]], run({$match: {_id: 3}}, {$score: {score: "$a", normalization: "minMaxScaler"}}, show));
assert.eq([{_id: 4, a: 40}], run({$score: {score: "$a"}}, {$match: {_id: 4}}), "a score that nobody asks for shows");
check([[1, 31], [2, 21], [3, 11], [4, 41]], run(byId, {$score: {score: "$a"}}, {$set: {z: s}}, {$score: {score: {$add: [s, 1]}}}, show));
assert.eq([{_id: 1, z: 30}], run(byId, {$score: {score: "$a"}}, {$set: {z: s}}, {$score: {score: 1}}, {$limit: 1}, {$project: {z: 1}}));
const [details] = run({$match: {_id: 1}}, {$score: {score: {$add: ["$a", "$b"]}, normalization: "sigmoid", weight: 0.5, scoreDetails: true}},
                      {$project: {d: {$meta: "scoreDetails"}}});
assert.eq(["value", "description", "rawScore", "normalization", "weight", "expression", "details"], Object.keys(details.d));
assert.eq([40, "sigmoid", 0.5, "{ string: { $add: [ '$a', '$b' ] } }", []],
          [details.d.rawScore, details.d.normalization, details.d.weight, details.d.expression, details.d.details]);
assert.close(0.5, details.d.value, "", 9);

// Fused: a document that a pipeline does not give has no score there.
const byA = [{$match: {a: {$lt: 40}}}, {$score: {score: "$a"}}], byB = [{$match: {b: {$exists: true}}}, {$score: {score: "$b"}}];
const fuse = (pipelines, more = {}, normalization = "none") => Object.assign({input: {pipelines, normalization}}, more);
const all = [{$score: {score: "$a"}}];
check([[2, 25], [1, 20], [4, 20], [3, 15]], run({$scoreFusion: fuse({all, b: byB})}, show));
check([[1, 35], [2, 35], [3, 20]], run({$scoreFusion: fuse({a: byA, b: byB}, {combination: {weights: {a: 2}}})}, show));
const expression = {$add: [{$divide: ["$$a", 2]}, "$$b"]};
check([[2, 40], [1, 25], [3, 25]], run({$scoreFusion: fuse({a: byA, b: byB}, {combination: {method: "expression", expression}})}, show));
check([[2, 0.75], [1, 0.5], [3, 0.25]], run({$scoreFusion: fuse({a: byA, b: byB}, {}, "minMaxScaler")}, show));
assert.eq([{_id: 2, a: 20, b: 30}], run({$scoreFusion: fuse({a: byA, b: byB})}, {$limit: 1}), "a fused document is not as it was");
const [four] = run({$scoreFusion: fuse({all, b: byB}, {scoreDetails: true, combination: {weights: {all: 3}}}, "none")}, {$match: {_id: 4}},
                   {$project: {s, d: {$meta: "scoreDetails"}}});
assert.eq([60, four.s, "none", {method: "avg"}], [four.s, four.d.value, four.d.normalization, four.d.combination]);
assert.eq([{inputPipelineName: "all", inputPipelineRawScore: 40, weight: 3, value: 120, details: []}], four.d.details);
check([[2, 26], [1, 21], [4, 21], [3, 16]], run({$scoreFusion: fuse({all, b: byB})}, {$score: {score: {$add: [s, 1]}}}, show));

// Scores of $text, and equal strings of the command's collation.
assert.commandWorked(t.insert([{_id: "k", a: 1, words: "one two"}, {_id: "K", a: 2, words: "one"}]));
assert.commandWorked(t.createIndex({words: "text"}));
const words = [{$match: {$text: {$search: "one"}}}];
const score = new Map(run(words[0], {$project: {s: {$meta: "textScore"}}}).map((d) => [d._id, d.s]));
assert.eq(2, score.size);
run({$scoreFusion: fuse({all: [{$match: {words: {$exists: true}}}, {$score: {score: "$a"}}], words})}, show)
    .forEach((d) => assert.close(((d._id === "k" ? 1 : 2) + score.get(d._id)) / 2, d.s, tojson(d), 9));
run({$scoreFusion: fuse({words})}, show).forEach((d) => assert.close(score.get(d._id), d.s, tojson(d), 9));
run(words[0], {$score: {score: {$meta: "textScore"}, weight: 0.5}}, show).forEach((d) => assert.close(score.get(d._id) / 2, d.s, tojson(d), 9));
assert.eq(2, t.aggregate([{$scoreFusion: fuse({words})}], {collation: {locale: "en", strength: 2}}).toArray().length);

const fails = (code, ...pipeline) =>
    assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), pipeline, cursor: {}}), code, tojson(pipeline));
fails(9, {$score: 1});
fails(40323, {$score: {score: 1}, $limit: 1});
fails(40414, {$score: {}});
fails(40415, {$score: {score: 1, more: 1}});
fails(2, {$score: {score: 1, normalization: "linear"}});
fails(14, {$score: {score: 1, normalization: 1}});
fails(14, {$score: {score: 1, weight: "1"}});
fails(51024, {$score: {score: 1, weight: -1}});
fails(51024, {$score: {score: 1, weight: 1.5}});
fails(14, {$score: {score: "$words"}}, show);
fails(14, {$score: {score: "$missing"}}, show);
fails(40218, {$score: {score: s}});
fails(40218, {$score: {score: 1}}, {$project: {d: {$meta: "scoreDetails"}}});
fails(10170100, {$match: {}}, {$scoreFusion: fuse({a: byA})});
fails(9402500, {$scoreFusion: fuse({a: [{$sort: {a: 1}}]})});
fails(9191103, {$scoreFusion: fuse({a: byA.concat({$project: {a: 1}})})});
fails(9834300, {$scoreFusion: fuse({a: []})});
fails(40414, {$scoreFusion: {input: {pipelines: {a: byA}}}});
fails(2, {$scoreFusion: fuse({a: byA}, {}, "linear")});
fails(2, {$scoreFusion: fuse({})});
fails(2, {$scoreFusion: fuse({a: byA}, {combination: {method: "sum"}})});
fails(2, {$scoreFusion: fuse({a: byA}, {combination: {method: "expression"}})});
fails(2, {$scoreFusion: fuse({a: byA}, {combination: {method: "expression", expression: "$$a", weights: {a: 1}}})});
fails(17276, {$scoreFusion: fuse({a: byA}, {combination: {method: "expression", expression: "$$b"}})});
fails(9460300, {$scoreFusion: fuse({a: byA}, {combination: {weights: {a: -1}}})});
fails(9967500, {$scoreFusion: fuse({a: byA}, {combination: {weights: {c: 1}}})});
fails(40218, {$scoreFusion: fuse({a: byA})}, {$project: {d: {$meta: "scoreDetails"}}});
