/**
 * The positional operator in a projection shows the array element that met the query.
 * Fails when it shows another element, or works where the query did not look into that array or twice in one projection.
 */
const coll = db.projection_positional;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [{k: 1, v: "x"}, {k: 2, v: "y"}, {k: 2, v: "z"}], n: [1, 5, 9]},
    {_id: 1, o: {deep: [{k: 7}, {k: 8}]}},
    {_id: 2, outer: [{inner: [1, 2, 3]}, {inner: [4, 5, 6]}]},
]));

assert.eq({_id: 0, a: [{k: 2, v: "y"}]}, coll.findOne({"a.k": 2}, {"a.$": 1}));
assert.eq({_id: 0, a: [{k: 2, v: "z"}]}, coll.findOne({a: {$elemMatch: {k: 2, v: "z"}}}, {"a.$": 1}));
assert.eq({_id: 0, n: [9]}, coll.findOne({n: {$gt: 5}}, {"n.$": 1}));
assert.eq({n: [1]}, coll.findOne({n: {$in: [1, 9]}}, {_id: 0, "n.$": 1}));
assert.eq({_id: 1, o: {deep: [{k: 8}]}}, coll.findOne({"o.deep.k": 8}, {"o.deep.$": 1}));
// Of arrays in arrays the first is cut, the others stay whole.
assert.eq({_id: 2, outer: [{inner: [4, 5, 6]}]}, coll.findOne({"outer.inner": 6}, {"outer.inner.$": 1}));

// findAndModify shows it as well, for the document before the update.
assert.eq({_id: 0, n: [5]}, coll.findAndModify({query: {_id: 0, n: 5}, update: {$set: {touched: 1}}, fields: {"n.$": 1}}));

const name = coll.getName();
function refused(codes, filter, projection) {
    assert.commandFailedWithCode(db.runCommand({find: name, filter: filter, projection: projection}), codes, () => tojson(projection));
}
refused(51246, {_id: 0}, {"a.$": 1});
refused(31276, {"a.k": 1, n: 1}, {"a.$": 1, "n.$": 1});
refused(31395, {"a.k": 1}, {"a.$": 0});
refused([31287, 31394], {"a.k": 1}, {"a.$.v": 1});
refused(31255, {"a.k": 1}, {"a.$": 1, n: {$elemMatch: {$gt: 1}}});
