/**
 * $lookup joins documents of another collection by equal fields.
 * Fails when a match is lost or doubled, null and missing join differently, or array elements do not join.
 */
const local = db.lookup_equality_local;
const foreign = db.lookup_equality_foreign;
local.drop();
foreign.drop();
assert.commandWorked(local.insert([
    {_id: 0, k: 1}, {_id: 1, k: [1, 2]}, {_id: 2, k: null}, {_id: 3}, {_id: 4, k: "x"}, {_id: 5, k: {a: 1}}, {_id: 6, o: [{p: 2}, {p: 3}]}, {_id: 7, k: []},
]));
assert.commandWorked(foreign.insert([
    {_id: "a", f: 1}, {_id: "b", f: NumberLong(2)}, {_id: "c", f: null}, {_id: "d"}, {_id: "e", f: [1, 3]}, {_id: "g", f: {a: 1}}, {_id: "h", f: "X"},
]));

function joined(localField, foreignField) {
    const pipeline = [
        {$lookup: {from: foreign.getName(), localField: localField, foreignField: foreignField, as: "m"}},
        {$sort: {_id: 1}},
    ];
    return local.aggregate(pipeline).toArray().map(doc => doc.m.map(match => match._id).sort().join(""));
}
const expected = ["ae", "abe", "cd", "cd", "", "g", "cd", "cd"];
assert.eq(expected, joined("k", "f"));
assert.commandWorked(foreign.createIndex({f: 1}));
assert.eq(expected, joined("k", "f"));
assert.eq(["cd", "cd", "cd", "cd", "cd", "cd", "be", "cd"], joined("o.p", "f"));

// The result is an array under the given name, which replaces what was there; a missing collection is an empty one.
assert.eq({_id: 4, k: []}, local.aggregate([{$match: {_id: 4}}, {$lookup: {from: foreign.getName(), localField: "k", foreignField: "f", as: "k"}}]).toArray()[0]);
assert.eq([], local.aggregate([{$match: {_id: 0}}, {$lookup: {from: "lookup_equality_none", localField: "k", foreignField: "f", as: "m"}}]).toArray()[0].m);
assert.eq({x: {y: []}}, local.aggregate([{$match: {_id: 4}}, {$lookup: {from: foreign.getName(), localField: "k", foreignField: "f", as: "x.y"}}, {$project: {_id: 0, x: 1}}]).toArray()[0]);

// Unwound at once.
assert.eq(["a", "e"], local.aggregate([
    {$match: {_id: 0}}, {$lookup: {from: foreign.getName(), localField: "k", foreignField: "f", as: "m"}}, {$unwind: "$m"}, {$sort: {"m._id": 1}},
]).toArray().map(doc => doc.m._id));

function refused(codes, lookup) {
    assert.commandFailedWithCode(db.runCommand({aggregate: local.getName(), pipeline: [{$lookup: lookup}], cursor: {}}), codes, () => tojson(lookup));
}
refused(ErrorCodes.FailedToParse, 1);
refused(ErrorCodes.FailedToParse, {});
refused(ErrorCodes.FailedToParse, {from: "x", localField: "k", foreignField: "f", AS: "m"});
refused(ErrorCodes.TypeMismatch, {from: "x", pipeline: null, as: "m"});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, 40414, 40415], {from: "x", localField: "k", foreignField: "f"});
refused([ErrorCodes.FailedToParse, 40414], {localField: "k", foreignField: "f", as: "m"});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, 40414, 40415], {from: "x", localField: "k", as: "m"});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, 40414, 40415], {from: "x", localField: 1, foreignField: "f", as: "m"});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, 40414, 40415], {from: "x", localField: "k", foreignField: "f", as: "m", unheardOf: 1});
refused(16410, {from: "x", localField: "$k", foreignField: "f", as: "m"});
