/**
 * Stages are moved and merged before a pipeline runs, which must never show in its results.
 * Fails when a rewritten pipeline gives another result than the same stages run one at a time.
 */
const coll = db.optimizations_keep_results;
const step = db.optimizations_keep_results_step;
coll.drop();
assert.commandWorked(coll.insert([...Array(60).keys()].map(i => ({_id: i, a: i % 7, b: {c: i % 4, d: i}, l: [i % 3, i % 5], s: "k" + (i % 6)}))));
assert.commandWorked(coll.createIndex({a: 1, _id: 1}));

const pipelines = [
    [{$sort: {_id: 1}}, {$match: {a: 3}}, {$limit: 4}],
    [{$sort: {_id: 1}}, {$limit: 10}, {$match: {a: {$gte: 3}}}],
    [{$sort: {_id: -1}}, {$skip: 10}, {$match: {"b.c": 1}}, {$skip: 2}],
    [{$project: {x: "$a", b: 1}}, {$match: {x: {$gt: 2}, "b.c": 1}}, {$sort: {_id: 1}}],
    [{$unwind: "$l"}, {$match: {l: 2, a: {$lt: 5}}}, {$sort: {_id: 1, l: 1}}],
    [{$sort: {a: 1, _id: 1}}, {$skip: 3}, {$limit: 20}, {$match: {"b.c": {$ne: 0}}}, {$limit: 5}],
    [{$set: {a: {$add: ["$a", 1]}}}, {$match: {a: 7}}, {$project: {a: 1}}, {$sort: {_id: -1}}],
    [{$group: {_id: "$a", n: {$sum: 1}, top: {$max: "$b.d"}}}, {$match: {_id: {$in: [1, 2]}, n: {$gte: 1}}}, {$sort: {_id: 1}}],
    [{$sort: {_id: 1}}, {$group: {_id: "$s", first: {$first: "$b.d"}, last: {$last: "$b.d"}}}, {$sort: {_id: 1}}],
    [{$limit: 60}, {$sort: {a: -1, _id: 1}}, {$limit: 10}, {$project: {_id: 0, a: 1, d: "$b.d"}}],
    [{$match: {$or: [{a: 1}, {s: "k2"}]}}, {$match: {"b.d": {$gte: 10}}}, {$sort: {_id: 1}}, {$skip: 2}, {$skip: 1}],
    [{$replaceWith: {$mergeObjects: ["$b", {k: "$_id"}]}}, {$match: {c: 2}}, {$sort: {k: 1}}, {$limit: 3}],
    [{$addFields: {t: {$concat: ["$s", "!"]}}}, {$match: {t: "k1!", a: {$gte: 2}}}, {$unset: ["l", "b"]}, {$sort: {_id: 1}}],
    [{$unwind: {path: "$l", includeArrayIndex: "i"}}, {$match: {i: 1, a: {$lt: 5}, $or: [{"b.c": 1}, {s: "k2"}]}}, {$sort: {_id: 1}}],
    [{$project: {a: 1, "b.c": 1, s: {$concat: ["$s", "!"]}}}, {$match: {a: 3, "b.c": {$gte: 0}, s: "k3!", "b.d": {$exists: false}}}, {$sort: {_id: 1}}],
    [{$project: {_id: 0, a: 1}}, {$match: {_id: {$exists: false}, a: {$gt: 4}}}, {$sort: {a: 1}}],
    [{$project: {b: 0}}, {$match: {a: 1, "b.c": null, $expr: {$lt: ["$_id", 40]}}}, {$sort: {_id: 1}}],
    [{$set: {"b.c": 9, "b.e": "$a"}}, {$match: {"b.d": {$lt: 20}, a: {$ne: 2}, "b.e": {$gt: 1}}}, {$sort: {_id: 1}}],
    [{$lookup: {from: coll.getName(), localField: "a", foreignField: "_id", as: "j.k"}}, {$match: {a: 2, "j.k.a": 2, "b.c": {$gte: 1}}}, {$sort: {_id: 1}}],
    [{$set: {r: {$rand: {}}}}, {$unset: ["r", "l"]}, {$match: {r: {$exists: false}, l: null, a: 6}}, {$sort: {_id: 1}}],
    [{$sort: {_id: 1}}, {$project: {l: {$filter: {input: "$l", cond: {$gt: ["$$this", 1]}}}}}, {$match: {l: {$ne: []}}}, {$limit: 7}],
];
for (const pipeline of pipelines) {
    let documents = coll.find().sort({_id: 1}).toArray();
    // Each stage on its own, over documents in the order that the stage before has left them in.
    for (const stage of pipeline) {
        const input = documents.map((doc, i) => ({_id: i, doc: doc}));
        step.drop();
        if (input.length > 0) {
            assert.commandWorked(step.insert(input));
        }
        documents = step.aggregate([{$sort: {_id: 1}}, {$replaceWith: "$doc"}, stage]).toArray();
    }
    assert.eq(documents, coll.aggregate(pipeline).toArray(), () => tojson(pipeline));
    assert.eq(documents.length, coll.aggregate(pipeline.concat([{$group: {_id: null, n: {$sum: 1}}}])).toArray().reduce((n, doc) => n + doc.n, 0));
}

// What an inhibiting stage parts stays as it is written: the match does not reach the plan.
const parted = [{$_internalInhibitOptimization: {}}, {$match: {a: 3}}, {$sort: {_id: 1}}];
assert.eq(coll.find({a: 3}).sort({_id: 1}).toArray(), coll.aggregate(parted).toArray());
if (db.hello().msg !== "isdbgrid") {
    const scans = pipeline => JSON.stringify(coll.explain().aggregate(pipeline)).includes("IXSCAN");
    assert(scans([{$match: {a: 3}}]));
    assert(!scans(parted));
}
for (const [argument, code] of [[1, 40489], [{a: 1}, 40490]]) {
    assert.commandFailedWithCode(
        db.runCommand({aggregate: coll.getName(), pipeline: [{$_internalInhibitOptimization: argument}], cursor: {}}), code);
}
