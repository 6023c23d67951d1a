/**
 * $group brings together what has one key, whatever the key is made of.
 * Fails when equal keys of different number types are apart, missing and null are confused, or a malformed $group is taken.
 */
const coll = db.group_keys;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, k: 1},
    {_id: 1, k: NumberLong(1)},
    {_id: 2, k: NumberDecimal("1.0")},
    {_id: 3, k: null},
    {_id: 4},
    {_id: 5, k: [1, 2]},
    {_id: 6, k: [1, 2]},
    {_id: 7, k: {a: 1, b: 2}},
    {_id: 8, k: {b: 2, a: 1}},
    {_id: 9, k: "1"},
]));

const byKey = coll.aggregate([{$group: {_id: "$k", ids: {$push: "$_id"}}}]).toArray().map(doc => doc.ids.sort());
assert.sameMembers([[0, 1, 2], [3, 4], [5, 6], [7], [8], [9]].map(tojson), byKey.map(tojson));

// The whole input is one group under a constant key.
assert.eq([{_id: null, n: 10}], coll.aggregate([{$group: {_id: null, n: {$sum: 1}}}]).toArray());
assert.eq([{_id: "c", n: 10}], coll.aggregate([{$group: {_id: "c", n: {$sum: 1}}}]).toArray());
assert.eq([], coll.aggregate([{$match: {none: 1}}, {$group: {_id: null, n: {$sum: 1}}}]).toArray());

// Keys may be documents of expressions; a missing part is left out.
const composed = coll.aggregate([{$group: {_id: {odd: {$mod: ["$_id", 2]}, type: {$type: "$k"}}, n: {$sum: 1}}}, {$sort: {"_id.odd": 1, "_id.type": 1}}]).toArray();
assert.eq([
    {_id: {odd: 0, type: "array"}, n: 1},
    {_id: {odd: 0, type: "decimal"}, n: 1},
    {_id: {odd: 0, type: "double"}, n: 1},
    {_id: {odd: 0, type: "missing"}, n: 1},
    {_id: {odd: 0, type: "object"}, n: 1},
    {_id: {odd: 1, type: "array"}, n: 1},
    {_id: {odd: 1, type: "long"}, n: 1},
    {_id: {odd: 1, type: "null"}, n: 1},
    {_id: {odd: 1, type: "object"}, n: 1},
    {_id: {odd: 1, type: "string"}, n: 1},
], composed);
assert.sameMembers([{_id: {}}, {_id: {a: []}}, {_id: {a: 1}}].map(tojson), coll.aggregate([{$group: {_id: {a: "$k.a"}}}]).toArray().map(tojson));

function refused(code, group) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$group: group}], cursor: {}}), code, () => tojson(group));
}
refused(15947, 1);
refused(15955, {n: {$sum: 1}});
refused(40235, {_id: null, "a.b": {$sum: 1}});
refused(40236, {_id: null, $n: {$sum: 1}});
