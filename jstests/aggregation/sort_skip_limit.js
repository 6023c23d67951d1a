/**
 * $sort, $skip and $limit choose an order and a part of it.
 * Fails when the part is taken before the order is made, a stable key is lost, or an invalid number is taken.
 */
const coll = db.sort_skip_limit;
coll.drop();
assert.commandWorked(coll.insert([...Array(30).keys()].map(i => ({_id: i, v: (i * 11) % 30, g: i % 3}))));

function run(...pipeline) {
    return coll.aggregate(pipeline).toArray().map(doc => doc.v);
}
assert.eq([0, 1, 2], run({$sort: {v: 1}}, {$limit: 3}));
assert.eq([29, 28], run({$sort: {v: -1}}, {$limit: 2}));
assert.eq([5, 6, 7], run({$sort: {v: 1}}, {$skip: 5}, {$limit: 3}));
assert.eq([5, 6], run({$sort: {v: 1}}, {$limit: 7}, {$skip: 5}));
assert.eq([2, 3], run({$sort: {v: 1}}, {$skip: 1}, {$skip: 1}, {$limit: 5}, {$limit: 2}));
assert.eq([], run({$sort: {v: 1}}, {$skip: 100}));
assert.eq([29], run({$sort: {v: 1}}, {$skip: 29}, {$limit: NumberLong(10)}));
assert.eq([0, 1, 2], run({$sort: {v: 1}}, {$limit: 10}, {$sort: {v: -1}}, {$sort: {v: 1}}, {$limit: 3}));
assert.eq([0, 2], run({$sort: {v: 1}}, {$match: {v: {$in: [0, 2, 29]}}}, {$limit: 2}));

const grouped = coll.aggregate([{$sort: {g: 1, v: -1}}, {$group: {_id: "$g", best: {$first: "$v"}}}, {$sort: {_id: 1}}]).toArray();
assert.eq([{_id: 0, best: 27}, {_id: 1, best: 29}, {_id: 2, best: 28}], grouped);

// A sort over computed fields.
assert.eq([15, 14, 16], coll.aggregate([{$set: {d: {$abs: {$subtract: ["$v", 15]}}}}, {$sort: {d: 1, v: 1}}, {$limit: 3}]).toArray().map(doc => doc.v));

function refused(codes, stage) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [stage], cursor: {}}), codes, () => tojson(stage));
}
refused(15958, {$limit: 0});
refused([5107201, 15957], {$limit: -1});
refused([2107201, 5107201, 15957], {$limit: "3"});
refused([5107201, 15957], {$limit: 1.5});
refused([5107200, 15956], {$skip: -1});
refused([5107200, 15972], {$skip: "3"});
refused(15973, {$sort: 1});
refused(15976, {$sort: {}});
refused(15975, {$sort: {v: 2}});
refused([15974, 17312], {$sort: {v: {x: 1}}});
refused(15974, {$sort: {v: "asc"}});
