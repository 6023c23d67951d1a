/**
 * What $expr compares a path with bounds the scan of an index, in joins as in filters, and never hides a document from it.
 * Fails when a comparison of an expression reads the whole collection, or finds something else by an index than without one.
 *
 * @tags: [assumes_unsharded_collection]
 */
const coll = db.expressions_use_indexes, bare = db.expressions_use_indexes_bare;
coll.drop();
bare.drop();
const values = [1, 1.0, NumberLong(1), NumberDecimal("1"), 0, -1, 5, NaN, NumberDecimal("NaN"), Infinity, "", "x", "X", {}, {a: 1}, [], [1], [1, 2], [[1]], ["x"], null, undefined, true, false,
                new Date(0), new Date(5), Timestamp(1, 1), ObjectId("000000000000000000000001"), MinKey, MaxKey, BinData(0, ""), /x/, [null], [{b: 1}], {b: 1}, {b: [1]}, {b: null}];
const documents = values.map((a, i) => ({_id: i, a: a})).concat([{_id: 100}, {_id: 101, b: 1}]);
assert.commandWorked(coll.insert(documents));
assert.commandWorked(bare.insert(documents));

const expressions = [];
for (const operator of ["$eq", "$gt", "$gte", "$lt", "$lte"]) {
    for (const value of values) {
        const literal = {$literal: value};
        expressions.push({[operator]: ["$a", literal]}, {[operator]: ["$a.b", literal]});
    }
    expressions.push({[operator]: [1, "$a"]}, {[operator]: ["x", "$$ROOT.a"]}, {$and: [{[operator]: ["$a", 1]}, {$gte: ["$a", 0]}, {$lt: ["$a.b", 5]}]});
}
function found(c) {
    return expressions.map(e => c.find({$expr: e}, {_id: 1}).toArray().map(d => d._id).sort((x, y) => x - y));
}
let expected = found(bare);
function same() {
    found(coll).forEach((ids, i) => assert.eq(expected[i], ids, () => tojson(expressions[i]) + tojson(coll.getIndexes())));
}
for (const key of [{a: 1}, {a: -1, _id: 1}, {"a.b": 1}, {"$**": 1}]) {
    assert.commandWorked(coll.createIndex(key));
    same();
    assert.commandWorked(coll.dropIndexes());
}
assert.commandWorked(coll.createIndex({a: 1}, {sparse: true}));
same();
assert.commandWorked(coll.dropIndexes());
// The same where no document has an array.
for (const c of [coll, bare]) {
    assert.commandWorked(c.deleteMany({$or: [{a: {$type: "array"}}, {"a.b": {$type: "array"}}]}));
}
expected = found(bare);
for (const [key, options] of [[{a: 1}, {}], [{a: "hashed"}, {}], [{a: -1}, {sparse: true}], [{"a.b": 1}, {}], [{a: 1}, {collation: {locale: "en", strength: 2}}]]) {
    assert.commandWorked(coll.createIndex(key, options));
    same();
    assert.commandWorked(coll.dropIndexes());
}

// Only what the bounds leave is looked at.
assert.commandWorked(coll.deleteMany({}));
assert.commandWorked(coll.insert([...Array(500).keys()].map(i => ({_id: i, a: i, g: i % 10}))));
assert.commandWorked(coll.createIndex({a: 1}));
const examined = filter => coll.find(filter).explain("executionStats").executionStats.totalDocsExamined;
assert.eq(1, examined({$expr: {$eq: ["$a", 7]}}));
assert.eq(10, examined({$expr: {$and: [{$gte: ["$a", 10]}, {$lt: ["$a", 20]}]}}));
assert.eq(500, examined({$expr: {$eq: ["$a", "$_id"]}}));
const bound = assert.commandWorked(db.runCommand({find: coll.getName(), filter: {$expr: {$eq: ["$a", "$$x"]}}, let: {x: 7}}));
assert.eq([7], bound.cursor.firstBatch.map(d => d._id));

// A join asks for one value after the other.
const before = coll.aggregate([{$indexStats: {}}, {$match: {name: "a_1"}}]).toArray()[0].accesses.ops;
const joined = coll.aggregate([
    {$match: {_id: {$lt: 20}}},
    {$lookup: {from: coll.getName(), let: {x: "$g"}, pipeline: [{$match: {$expr: {$eq: ["$a", "$$x"]}}}], as: "j"}},
    {$sort: {_id: 1}},
]).toArray();
assert.eq([...Array(20).keys()].map(i => [i % 10]), joined.map(d => d.j.map(e => e._id)));
const after = coll.aggregate([{$indexStats: {}}, {$match: {name: "a_1"}}]).toArray()[0].accesses.ops;
assert.gte(Number(after) - Number(before), 20);

// What a filter asks of the fields that a stage in front of it leaves alone is asked of the collection.
const bounded = pipeline => tojson(coll.explain().aggregate(pipeline)).includes('"IXSCAN"');
assert(bounded([{$addFields: {t: 1}}, {$match: {a: 7, t: 1}}]));
assert(bounded([{$unwind: "$g"}, {$match: {a: 7}}]));
assert(!bounded([{$project: {a: "$g"}}, {$match: {a: 7}}]));
const view = db.expressions_use_indexes_view;
view.drop();
assert.commandWorked(db.createView(view.getName(), coll.getName(), [{$project: {a: 1, g: 1}}, {$lookup: {from: bare.getName(), localField: "a", foreignField: "_id", as: "j"}}]));
assert(tojson(view.find({a: 7, j: []}).explain()).includes('"IXSCAN"'));
assert.eq([7], view.find({a: 7}).toArray().map(d => d._id));
