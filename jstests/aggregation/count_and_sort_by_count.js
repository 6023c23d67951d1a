/**
 * $count and $sortByCount are the two short forms of counting.
 * Fails when an empty input is counted as zero, the order is not by count, or an invalid name is taken.
 */
const coll = db.count_and_sort_by_count;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, k: "a", tags: ["x", "y"]}, {_id: 1, k: "b", tags: ["x"]}, {_id: 2, k: "a", tags: ["x"]}, {_id: 3, k: "a"}, {_id: 4, tags: ["y"]}, {_id: 5, k: "b"},
]));

assert.eq([{n: 6}], coll.aggregate([{$count: "n"}]).toArray());
assert.eq([{"many words": 3}], coll.aggregate([{$match: {k: "a"}}, {$count: "many words"}]).toArray());
assert.eq([], coll.aggregate([{$match: {none: 1}}, {$count: "n"}]).toArray());
assert.eq([{n: 2}], coll.aggregate([{$limit: 2}, {$count: "n"}]).toArray());

assert.eq([{_id: "a", count: 3}, {_id: "b", count: 2}, {_id: null, count: 1}], coll.aggregate([{$sortByCount: "$k"}]).toArray());
assert.eq([{_id: "x", count: 3}, {_id: "y", count: 2}], coll.aggregate([{$unwind: "$tags"}, {$sortByCount: "$tags"}]).toArray());
assert.eq([{_id: true, count: 4}, {_id: false, count: 2}], coll.aggregate([{$sortByCount: {$isArray: "$tags"}}]).toArray());

function refused(codes, stage) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [stage], cursor: {}}), codes, () => tojson(stage));
}
refused(40156, {$count: 1});
refused([40156, 40157], {$count: ""});
refused(40158, {$count: "$n"});
refused(40160, {$count: "a.b"});
refused(40149, {$sortByCount: 1});
refused(40148, {$sortByCount: "k"});
refused(40147, {$sortByCount: {k: "$k"}});
