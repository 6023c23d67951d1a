/**
 * $elemMatch in a projection gives the first array element that meets its conditions.
 * Fails when another element or more than one comes back, a field without such an element stays, or a dotted path is taken.
 */
const coll = db.projection_elem_match;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [{k: 1, v: "x"}, {k: 2, v: "y"}, {k: 2, v: "z"}], n: [1, 5, 9]},
    {_id: 1, a: [{k: 3, v: "x"}], n: []},
    {_id: 2, a: 5},
]));

assert.eq([{_id: 0, a: [{k: 2, v: "y"}]}, {_id: 1}, {_id: 2}], coll.find({}, {a: {$elemMatch: {k: 2}}}).sort({_id: 1}).toArray());
assert.eq({_id: 0, n: [5]}, coll.findOne({_id: 0}, {n: {$elemMatch: {$gt: 1}}}));
assert.eq({_id: 0}, coll.findOne({_id: 0}, {n: {$elemMatch: {$gt: 10}}}));
assert.eq({_id: 0, n: [1, 5, 9], a: [{k: 2, v: "z"}]}, coll.findOne({_id: 0}, {a: {$elemMatch: {k: 2, v: "z"}}, n: 1}));
assert.eq({n: [1]}, coll.findOne({_id: 0}, {_id: 0, n: {$elemMatch: {$in: [1, 9]}}}));
assert.eq({_id: 0, a: [{k: 1, v: "x"}]}, coll.findOne({_id: 0}, {a: {$elemMatch: {$or: [{v: "z"}, {k: 1}]}}}));

const name = coll.getName();
function refused(codes, projection) {
    assert.commandFailedWithCode(db.runCommand({find: name, projection: projection}), codes, () => tojson(projection));
}
refused(31274, {a: {$elemMatch: 1}});
refused(31275, {"a.k": {$elemMatch: {x: 1}}});
refused(ErrorCodes.BadValue, {a: {$elemMatch: {$unheardOf: 1}}});

// Only find knows it.
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$project: {a: {$elemMatch: {k: 1}}}}], cursor: {}}),
                             [31325, ErrorCodes.InvalidPipelineOperator]);
