/**
 * A query finds in a collection with a partial index what it finds without: where its values equal some of another type, or are in no
 * order, the index may lack them.
 * Fails if an index with a filter by order is taken for NaN, one by type for its equals of other types, or one by existence for what is missing.
 */
const coll = db.partial_index_odd_values;
coll.drop();
const values = [null, NaN, NumberDecimal("NaN"), 0, -0.0, Infinity, NumberInt(5), NumberLong(5), 5.5, NumberDecimal("5"), "s", MinKey, MaxKey, true, {b: 5},
                [], [NaN], [NumberInt(5), "s"], [null]];
assert.commandWorked(coll.insert(values.map((a, _id) => ({_id, a}))));
assert.commandWorked(coll.insert({_id: 100}));
assert.commandWorked(coll.insert({_id: 101, a: 5}));

const filters = [{$lte: 5}, {$gte: 0}, {$lt: Infinity}, {$gt: -Infinity}, {$lte: NaN}, {$exists: true}, {$type: "int"}, {$type: "double"}, {$type: ["int", "long"]},
                 {$type: "number"}, {$type: "null"}, {$type: "string"}, {$type: "array"}, {$in: [NaN, 5, "s"]}, {$gte: MinKey}, {$lte: MaxKey}];
const asked = values.filter(v => !Array.isArray(v) || v.length === 1);
const queries = [{$gte: MinKey}, {$lte: MaxKey}, {$gt: MinKey}, {$lt: MaxKey}, {$lte: null}, {$exists: true}, {$ne: null}, {$in: [NaN]}, {$in: [null, 5]}, {$in: [NaN, 5]},
                 {$lte: NaN}, {$gte: NaN}, {$lt: NaN}, {$lt: 5}, {$gte: 5}, {$type: "int"}, {$type: "number"}, {$type: "null"}, ...asked.map(v => ({$eq: v}))];
const ids = cursor => cursor.toArray().map(d => d._id).sort((a, b) => a - b);
for (const filter of filters) {
    assert.commandWorked(coll.createIndex({a: 1}, {name: "partial", partialFilterExpression: {a: filter}}));
    for (const query of queries) {
        const scanned = ids(coll.find({a: query}).hint({$natural: 1}));
        assert.eq(scanned, ids(coll.find({a: query})), () => tojson(query) + " beside an index of " + tojson(filter));
    }
    assert.commandWorked(coll.dropIndex("partial"));
}
