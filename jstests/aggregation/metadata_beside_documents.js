/**
 * Scores, and what a $geoNear found, are asked for by $meta and are no part of the document.
 * Fails when a $facet, $$ROOT, $out or a new root shows them or loses them, when a view's score is unknown behind it, or when one that nobody gave is not refused.
 */
const t = db.metadata_beside_documents;
t.drop();
const documents = [1, 2, 3].map((i) => ({_id: i, a: i * 10, sub: {b: i}, words: "one ".repeat(i) + "and more", text: "$$ROOT"}));
assert.commandWorked(t.insert(documents));
assert.commandWorked(t.createIndex({words: "text"}));
const s = {$meta: "score"}, show = {$project: {s}}, byId = {$sort: {_id: 1}}, score = {$score: {score: "$a"}};
const run = (...pipeline) => t.aggregate(pipeline).toArray();
const scores = [10, 20, 30].map((s, i) => ({_id: i + 1, s}));
const fuse = {$scoreFusion: {input: {pipelines: {a: [score]}, normalization: "none"}}};
const found = {$match: {$text: {$search: "one"}}}, textScore = {$meta: "textScore"};

// Each of the three gives every pipeline of a $facet what it asks for, and no more.
for (const [first, meta] of [[score, s], [fuse, s], [found, textScore]]) {
    const expected = run(first, {$project: {s: meta}}, byId);
    const [facets] = run(first, {$facet: {
        shown: [{$project: {s: meta}}, byId], sorted: [{$sort: {x: meta}}, {$limit: 1}], plain: [byId], none: [{$match: {_id: 0}}],
        own: [{$score: {score: {$multiply: ["$_id", 2]}}}, byId, show], over: [{$score: {score: {$add: [meta, 1]}}}, byId, show],
    }});
    assert.eq(3, expected.length);
    assert.eq(expected, facets.shown);
    assert.eq(1, facets.sorted.length);
    assert.eq(documents.find((d) => d._id === facets.sorted[0]._id), facets.sorted[0]);
    assert.eq(documents, facets.plain);
    assert.eq([], facets.none);
    assert.eq([2, 4, 6], facets.own.map((d) => d.s));
    facets.over.forEach((d, i) => assert.close(expected[i].s + 1, d.s, "", 9));

    // Whole documents are as they were stored.
    assert.eq(documents, run(first, byId, {$group: {_id: null, all: {$push: "$$ROOT"}, most: {$max: meta}}})[0].all);
    run(first, {$project: {whole: "$$ROOT", s: meta}}).forEach((d) => assert.eq(documents[d._id - 1], d.whole));
    assert.eq(3, run(first, {$match: {text: "$$ROOT", $expr: {$gt: [meta, 0]}}}).length);
    t.aggregate([first, {$sort: {x: meta}}, {$out: "metadata_out"}]);
    assert.eq(documents, db.metadata_out.find().sort({_id: 1}).toArray());
    // A projection that excludes keeps what it does not name, and the metadata.
    const without = run(first, {$project: {_id: 0}}, {$sort: {x: meta}});
    assert.sameMembers(documents.map((d) => d.a), without.map((d) => d.a));
    run(first, {$project: {sub: {b: 0}}}, {$sort: {x: meta}}).forEach((d) => assert.eq([d._id * 10, {}], [d.a, d.sub]));
    // A new root has the metadata of the old one.
    const roots = run(first, byId, {$replaceRoot: {newRoot: "$sub"}}, {$project: {b: 1, s: meta}});
    assert.eq(expected.map((d) => ({b: d._id, s: d.s})), roots);
    assert.eq(roots, run(first, byId, {$replaceWith: "$sub"}, {$project: {b: 1, s: meta}}));
    assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), cursor: {}, pipeline: [first, {$replaceWith: "$a"}, {$project: {s: meta}}]}), 40228);
}

// A view's score is known behind it.
const view = db.metadata_view;
view.drop();
assert.commandWorked(db.createView(view.getName(), t.getName(), [score]));
assert.eq(scores, view.aggregate([byId, show]).toArray());
assert.eq(scores.map((d) => ({_id: d._id, s: d.s + 1})), view.aggregate([{$score: {score: {$add: [s, 1]}}}, byId, show]).toArray());
assert.eq(documents, view.find().sort({_id: 1}).toArray());
assert(view.drop());

// What a $geoNear found.
const near = db.metadata_near;
near.drop();
const at = (x) => ({type: "Point", coordinates: [x, 0]});
assert.commandWorked(near.insert([{_id: 1, v: 2, p: at(0)}, {_id: 2, v: 1, p: at(2)}, {_id: 3, v: 1, p: at(1)}]));
assert.commandWorked(near.createIndex({p: "2dsphere"}));
const distance = {$meta: "geoNearDistance"}, place = {$meta: "geoNearPoint"};
for (const spec of [{}, {distanceField: "d"}, {distanceField: "d.e", includeLocs: "l"}]) {
    const first = {$geoNear: Object.assign({near: at(0)}, spec)};
    const rows = near.aggregate([first, {$project: {m: distance, place}}]).toArray();
    assert.eq([1, 3, 2], rows.map((d) => d._id));
    assert.eq([at(0), at(1), at(2)], rows.map((d) => d.place));
    rows.forEach((d, i) => assert.close(i * 111319.5, d.m, "", 0));
    assert.eq([2, 3, 1], near.aggregate([first, {$sort: {x: distance}}]).toArray().map((d) => d._id), "the farthest first");
    assert.eq([1], near.aggregate([first, {$match: {$expr: {$lt: [distance, 1]}}}]).toArray().map((d) => d._id));
}
assert.eq(["_id", "p", "v"], Object.keys(near.aggregate([{$geoNear: {near: at(0)}}, {$sort: {x: distance}}]).next()).sort());

const fails = (code, ...pipeline) =>
    assert.commandFailedWithCode(db.runCommand({aggregate: near.getName(), pipeline, cursor: {}}), code, tojson(pipeline));
[{$project: {m: distance}}, {$project: {m: place}}].forEach((stage) => fails(40218, stage));
fails(40218, show, {$score: {score: 1}});
fails(40218, {$facet: {a: [show, {$score: {score: 1}}]}});
fails(31325, {$project: {a: {$_internalScore: 1}}});

// An exclusion may add them, wherever it names them.
for (const spec of [{words: 0, text: 0, s: textScore}, {s: textScore, words: 0, text: 0}, {s: textScore, _id: 1, words: 0, text: 0}]) {
    assert.eq(run(found, {$set: {s: textScore}}, {$unset: ["words", "text"]}, byId), run(found, {$project: spec}, byId), () => tojson(spec));
}
assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), pipeline: [{$project: {words: 0, s: {$add: ["$a", 1]}}}], cursor: {}}), 31252);
