/**
 * `{$meta: "sortKey"}` gives the values that a document was sorted by, whatever has become of its fields since. It fails if they are missing,
 * are those of another sort, or stay in the documents.
 */
const coll = db.sort_key_metadata;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 3, b: [5, 9]}, {_id: 2, a: 1, b: [2, 4]}, {_id: 3, b: []}]));
const keys = (docs) => docs.map((d) => [d._id, d.k]);
const run = (pipeline) => coll.aggregate(pipeline).toArray();

for (const index of [null, {a: 1}, {a: 1, b: -1}]) {
    if (index) {
        assert.commandWorked(coll.createIndex(index));
    }
    // One value for each field of the pattern; null for nothing, the greatest of an array that descends.
    const projection = {k: {$meta: "sortKey"}};
    assert.eq([[3, [null]], [2, [1]], [1, [3]]], keys(coll.find({}, projection).sort({a: 1}).toArray()));
    // It says nothing of the other fields.
    const whole = (p) => coll.find({_id: 1}, p).sort({a: 1}).toArray();
    assert.eq([{_id: 1, a: 3, b: [5, 9], k: [3]}], whole(projection));
    assert.eq([{_id: 1, b: [5, 9], k: [3]}], whole({a: 0, k: {$meta: "sortKey"}}));
    assert.eq([{a: 3, b: [5, 9], k: [3]}], whole({_id: 0, k: {$meta: "sortKey"}}));
    assert.eq([{_id: 1, a: 3, k: [3]}], whole({a: 1, k: {$meta: "sortKey"}}));
    assert.eq([[1, [9, 3]], [2, [4, 1]]], keys(coll.find({}, projection).sort({b: -1, a: 1}).limit(2).toArray()));
    assert.eq([[3, [null]], [2, [1]], [1, [3]]], keys(run([{$sort: {a: 1}}, {$project: projection}])));
    assert.eq([[2, [1]]], keys(run([{$match: {a: {$exists: true}}}, {$sort: {a: 1}}, {$limit: 1}, {$addFields: projection}])));

    // Of the document as the sort saw it, and of the last sort.
    assert.eq([[3, [null]], [2, [1]], [1, [3]]],
              keys(run([{$sort: {a: 1}}, {$addFields: {a: "x"}}, {$addFields: projection}, {$project: {k: 1}}])));
    assert.eq([[3, [-3]], [2, [-2]], [1, [-1]]],
              keys(run([{$sort: {a: 1}}, {$project: {first: {$meta: "sortKey"}, n: {$multiply: ["$_id", -1]}}}, {$sort: {n: 1}}, {$addFields: projection}])));
    assert.eq([[[null], [1], [3]]],
              run([{$sort: {a: 1}}, {$group: {_id: 0, k: {$push: {$meta: "sortKey"}}}}]).map((d) => d.k));
    assert.eq(["_id", "a", "b", "k"], Object.keys(run([{$sort: {a: 1}}, {$addFields: projection}, {$match: {_id: 1}}])[0]).sort());
}

// Without a sort there is none.
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), projection: {k: {$meta: "sortKey"}}}), 40218);
assert.commandFailedWithCode(
    db.runCommand({aggregate: coll.getName(), pipeline: [{$project: {k: {$meta: "sortKey"}}}], cursor: {}}), 40218);
assert.commandFailedWithCode(
    db.runCommand({aggregate: coll.getName(), pipeline: [{$project: {k: {$meta: "sortKey"}}}, {$sort: {a: 1}}], cursor: {}}), 40218);
