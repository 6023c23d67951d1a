/**
 * $facet runs several pipelines over the same documents in one pass.
 * Fails when one pipeline sees what another has changed, misses documents, or a stage that cannot stand there is taken.
 */
const coll = db.facet_stage;
coll.drop();
assert.commandWorked(coll.insert([...Array(12).keys()].map(i => ({_id: i, k: i % 3, v: i}))));

const result = coll.aggregate([
    {$match: {v: {$lt: 9}}},
    {$facet: {
        total: [{$count: "n"}],
        byKey: [{$group: {_id: "$k", sum: {$sum: "$v"}}}, {$sort: {_id: 1}}],
        changed: [{$set: {v: 0}}, {$match: {v: {$ne: 0}}}],
        top: [{$sort: {v: -1}}, {$limit: 2}, {$project: {_id: 0, v: 1}}],
        none: [{$match: {none: 1}}],
    }},
]).toArray();
assert.eq([{
    total: [{n: 9}],
    byKey: [{_id: 0, sum: 9}, {_id: 1, sum: 12}, {_id: 2, sum: 15}],
    changed: [],
    top: [{v: 8}, {v: 7}],
    none: [],
}], result);

// Even without documents there is one result.
assert.eq([{a: [], b: []}], coll.aggregate([{$match: {none: 1}}, {$facet: {a: [{$match: {}}], b: [{$limit: 1}]}}]).toArray());
assert.eq([{n: 12}], coll.aggregate([{$facet: {all: [{$project: {_id: 1}}]}}, {$project: {n: {$size: "$all"}}}]).toArray());

function refused(codes, facet) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$facet: facet}], cursor: {}}), codes, () => tojson(facet));
}
refused(40169, 1);
refused(40169, {});
refused(40170, {a: 1});
refused(40170, {a: {$match: {}}});
refused([40171, ErrorCodes.TypeMismatch], {a: [1]});
refused([40169, 16410], {$a: [{$match: {}}]});
refused([40169, 40353, 16412], {"a.b": [{$match: {}}]});
refused(40600, {a: [{$facet: {b: [{$match: {}}]}}]});
refused(40600, {a: [{$out: "x"}]});
refused(40600, {a: [{$merge: "x"}]});
refused(40600, {a: [{$indexStats: {}}]});
refused(40324, {a: [{$unheardOf: 1}]});
// A join refuses what may not stand in it, wherever it stands itself.
refused(51047, {f: [{$lookup: {from: "x", pipeline: [{$out: "y"}], as: "m"}}]});
refused(31441, {f: [{$unionWith: {coll: "x", pipeline: [{$merge: "y"}]}}]});
refused(40600, {f: [{$unionWith: {coll: "x", pipeline: [{$collStats: {}}]}}]});
