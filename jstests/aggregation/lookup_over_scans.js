/**
 * A join by equality for which the other collection has to be read whole reads it a few times, however many documents it joins.
 * Fails if a view is read again for every few hundred documents, or if documents without the field are missed where an index knows nothing
 * of them.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
const local = db.lookup_over_scans_local, foreign = db.lookup_over_scans_foreign, view = db.lookup_over_scans_view;
for (const coll of [local, foreign, view]) {
    coll.drop();
}
const N = 3000, M = 50;
assert.commandWorked(local.insert([...Array(N).keys()].map(i => ({_id: i, k: i % (2 * M)}))));
assert.commandWorked(foreign.insert([...Array(M).keys()].map(i => ({_id: i, half: i / 2}))));

const scans = () => foreign.aggregate([{$collStats: {queryExecStats: {}}}]).toArray()
    .reduce((sum, stats) => sum + Number(stats.queryExecStats.collectionScans.total), 0);

function joined(from, foreignField, asked) {
    const pipeline = [{$sort: {_id: 1}}, {$lookup: {from: from.getName(), localField: "k", foreignField, as: "found"}},
                      {$project: {n: {$size: "$found"}}}];
    const before = scans();
    assert.eq(asked, local.aggregate(pipeline).toArray().map(doc => doc.n));
    return scans() - before;
}

// The stage of the view computes what is joined by, so nothing can be looked up below it.
assert.commandWorked(db.createView(view.getName(), foreign.getName(), [{$set: {whole: {$multiply: ["$half", 2]}}}]));
const each = [...Array(N).keys()].map(i => (i % (2 * M) < M ? 1 : 0));
assert.lte(joined(view, "whole", each), 4, "reads of the collection below the view");
assert.lte(joined(foreign, "half", [...Array(N).keys()].map(i => (i % (2 * M) < M / 2 ? 1 : 0))), 4, "reads of the collection");

// A sparse index has the documents with the field; null is looked for among the others, too.
assert.commandWorked(foreign.createIndex({field: 1}, {sparse: true}));
assert.commandWorked(foreign.update({_id: {$lt: 10}}, [{$set: {field: "$_id"}}], {multi: true}));
assert.commandWorked(foreign.update({_id: 10}, {$set: {field: null}}));
assert.commandWorked(local.update({_id: {$gte: N - 100}}, {$unset: {k: 1}}, {multi: true}));
const sparse = [...Array(N).keys()].map(i => (i >= N - 100 ? M - 10 : i % (2 * M) < 10 ? 1 : 0));
assert.lte(joined(foreign, "field", sparse), 4, "reads of the collection beside its sparse index");
