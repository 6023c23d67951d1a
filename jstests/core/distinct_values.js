/**
 * distinct lists each value of a field once, with array elements as values.
 * Fails when equal values are listed twice, an array is listed whole, or the query does not restrict it.
 */
const values = db.distinct_values;
values.drop();
assert.commandWorked(values.insert([
    {_id: 0, a: 1, o: {b: "x"}},
    {_id: 1, a: [1, 2, [3]], o: [{b: "y"}, {b: "x"}]},
    {_id: 2, a: NumberLong(2), o: {b: "z"}},
    {_id: 3, a: null},
    {_id: 4},
    {_id: 5, a: [], o: {}},
    {_id: 6, a: {k: 1}},
    {_id: 7, a: "1"},
]));

assert.sameMembers([1, 2, [3], null, {k: 1}, "1"].map(tojson), values.distinct("a").map(v => tojson(v instanceof NumberLong ? v.toNumber() : v)));
assert.sameMembers(["x", "y", "z"], values.distinct("o.b"));
assert.sameMembers([1, "1"], values.distinct("a", {_id: {$in: [0, 7]}}));
assert.eq([2], values.distinct("a", {_id: 2}).map(Number));
assert.eq([], values.distinct("none"));
assert.eq([], db.distinct_no_such_collection.distinct("a"));
assert.sameMembers([1, 2].map(Number), values.distinct("a.0").concat(2).map(Number));

// The same from an index.
assert.commandWorked(values.createIndex({a: 1}));
assert.commandWorked(values.createIndex({"o.b": 1}));
assert.eq(6, values.distinct("a").length);
assert.sameMembers(["x", "y", "z"], values.distinct("o.b"));
assert.sameMembers(["x", "z"], values.distinct("o.b", {"o.b": {$ne: "y"}}));

const name = values.getName();
assert.commandFailedWithCode(db.runCommand({distinct: name}), 40414);
assert.commandFailedWithCode(db.runCommand({distinct: name, key: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({distinct: name, key: "a", query: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({distinct: name, key: "a", query: {$bad: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({distinct: "", key: "a"}), ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({distinct: name, key: "a", unheardOf: 1}), 40415);
