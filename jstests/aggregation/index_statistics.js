/**
 * $indexStats shows which indexes are used, so that unused ones can be dropped.
 * Fails when a use is not counted, an index is missing, or the stage stands anywhere but first.
 */
const coll = db.index_statistics;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, a: i, b: i}))));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({b: 1}));

/** The uses of each index by its name, summed over shards. */
function uses() {
    const sums = {};
    for (const index of coll.aggregate([{$indexStats: {}}]).toArray()) {
        assert.eq(["name", "key", "host", "accesses"].every(field => index.hasOwnProperty(field)), true, () => tojson(index));
        assert(index.accesses.since instanceof Date);
        sums[index.name] = (sums[index.name] || 0) + Number(index.accesses.ops);
    }
    return sums;
}
const before = uses();
assert(before.hasOwnProperty("_id_") && before.hasOwnProperty("a_1") && before.hasOwnProperty("b_1"), tojson(before));
for (let i = 0; i < 3; i++) {
    assert.eq(1, coll.find({a: i}).itcount());
}
assert.eq(1, coll.aggregate([{$match: {a: 7}}]).itcount());
assert.commandWorked(coll.update({a: 8}, {$set: {c: 1}}));
const after = uses();
assert.lte(5, after.a_1 - before.a_1);
assert.eq(before.b_1, after.b_1);

assert.eq(["b_1"], coll.aggregate([{$indexStats: {}}, {$match: {name: "b_1"}}, {$group: {_id: "$name"}}]).toArray().map(doc => doc._id));
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$match: {}}, {$indexStats: {}}], cursor: {}}), 40602);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$indexStats: {x: 1}}], cursor: {}}), 28803);

// Of a time series the indexes are shown as they were asked for.
const series = db.index_statistics_series;
series.drop();
assert.commandWorked(db.createCollection(series.getName(), {timeseries: {timeField: "t", metaField: "m"}}));
assert.commandWorked(series.createIndex({"m.place": 1, v: -1}, {name: "own"}));
const shown = series.aggregate([{$indexStats: {}}, {$group: {_id: "$name", key: {$first: "$key"}, spec: {$first: "$spec.key"}}}, {$sort: {_id: 1}}]).toArray();
assert.eq([["m_1_t_1", {m: 1, t: 1}], ["own", {"m.place": 1, v: -1}]], shown.map(row => [row._id, row.key]));
assert.eq(shown.map(row => row.key), shown.map(row => row.spec));
series.drop();

// Of a view they are those of its collection.
const base = db.index_statistics_base, view = db.index_statistics_view;
base.drop();
view.drop();
assert.commandWorked(base.insert({a: 1}));
assert.commandWorked(db.createView(view.getName(), base.getName(), []));
assert.sameMembers(base.aggregate([{$indexStats: {}}, {$group: {_id: "$name"}}]).toArray(), view.aggregate([{$indexStats: {}}, {$group: {_id: "$name"}}]).toArray());
