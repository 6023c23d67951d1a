/**
 * A command that names a collation compares strings by it wherever it compares: in filters, sorts, groups, sets, updates.
 * Fails when some operator goes on comparing bytes, or numbers and regular expressions begin to follow the collation.
 */
const coll = db.collation_of_commands;
const loose = {locale: "en", strength: 2};

function fill() {
    coll.drop();
    assert.commandWorked(coll.insert([
        {_id: 1, s: "apple", n: 1}, {_id: 2, s: "Banana", n: 2}, {_id: 3, s: "APPLE", n: 3},
        {_id: 4, s: "cherry", n: 4, a: ["x", "Y"]}, {_id: 5, s: 7, n: 5},
    ]));
}
fill();
const ids = (filter, collation) => coll.find(filter).collation(collation).sort({_id: 1}).toArray().map(doc => doc._id);

assert.eq([1, 3], ids({s: "Apple"}, loose));
assert.eq([], ids({s: "Apple"}, {locale: "en"}));
assert.eq([1, 2, 3], ids({s: {$in: ["apple", "banana"]}}, loose));
assert.eq([2, 4, 5], ids({s: {$ne: "aPPle"}}, loose));
assert.eq([1, 2, 3], ids({s: {$lt: "C"}}, loose));
assert.eq([4], ids({a: {$elemMatch: {$eq: "y"}}}, loose));
assert.eq([4], ids({a: {$all: ["X", "y"]}}, loose));
assert.eq([1, 3], ids({$expr: {$eq: ["$s", "aPple"]}}, loose));
assert.eq([1], ids({s: /^a/}, loose), "a regular expression compares characters");
assert.eq([5], ids({s: 7}, loose));
assert.eq([5, 1, 3, 2, 4], coll.find().collation(loose).sort({s: 1, _id: 1}).toArray().map(doc => doc._id));
assert.eq(2, coll.find({s: "apple"}).collation(loose).count());
assert.eq(2, coll.countDocuments({s: "apple"}, {collation: loose}));
// Which of two equal spellings stands for both depends on where they lie.
const lower = value => typeof value === "string" ? value.toLowerCase() : value;
assert.eq([7, "apple", "banana", "cherry"], coll.distinct("s", {}, {collation: loose}).map(lower));

const aggregate = pipeline => coll.aggregate(pipeline, {collation: loose}).toArray();
assert.eq([{_id: 7, n: 1}, {_id: "apple", n: 2}, {_id: "Banana", n: 1}, {_id: "cherry", n: 1}],
    aggregate([{$sort: {_id: 1}}, {$group: {_id: "$s", n: {$sum: 1}}}, {$sort: {_id: 1}}]));
assert.eq([{_id: null, least: 7, most: "cherry", set: [7, "apple", "Banana", "cherry"]}], aggregate([
    {$sort: {s: 1, _id: 1}},
    {$group: {_id: null, least: {$min: "$s"}, most: {$max: "$s"}, set: {$addToSet: "$s"}}},
]));
assert.eq([{same: true, order: -1, found: true, at: 1, least: "a", set: ["A"], sorted: ["a", "B", "c"]}], aggregate([
    {$limit: 1},
    {$project: {
        _id: 0, same: {$eq: ["a", "A"]}, order: {$cmp: ["B", "c"]}, found: {$in: ["A", ["a"]]}, at: {$indexOfArray: [["x", "A"], "a"]},
        least: {$min: ["a", "B"]}, set: {$setUnion: [["A"], ["a"]]}, sorted: {$sortArray: {input: ["c", "B", "a"], sortBy: 1}},
    }},
]));
assert.eq([{_id: 1, same: [1, 3]}], aggregate([
    {$match: {_id: 1}}, {$lookup: {from: coll.getName(), localField: "s", foreignField: "s", as: "same"}},
    {$project: {same: {$map: {input: {$sortArray: {input: "$same", sortBy: {_id: 1}}}, in: "$$this._id"}}}},
]));

// Writes.
assert.eq(2, coll.updateMany({s: "apple"}, {$set: {u: 1}}, {collation: loose}).modifiedCount);
assert.commandWorked(coll.updateOne({_id: 4}, {$addToSet: {a: "X"}}, {collation: loose}));
assert.eq(["x", "Y"], coll.findOne({_id: 4}).a);
assert.commandWorked(coll.updateOne({_id: 4}, {$pull: {a: "X"}}, {collation: loose}));
assert.eq(["Y"], coll.findOne({_id: 4}).a);
assert.commandWorked(coll.updateOne({_id: 4}, {$min: {s: "Box"}}, {collation: loose}));
assert.eq("Box", coll.findOne({_id: 4}).s);
assert.commandWorked(coll.updateOne({_id: 4}, {$push: {a: {$each: ["b", "C", "a"], $sort: 1}}}, {collation: loose}));
assert.eq(["a", "b", "C", "Y"], coll.findOne({_id: 4}).a);
assert.commandWorked(coll.updateOne({_id: 4}, {$set: {"a.$[e]": "z"}}, {arrayFilters: [{e: "c"}], collation: loose}));
assert.eq(["a", "b", "z", "Y"], coll.findOne({_id: 4}).a);
assert.eq("APPLE", coll.findAndModify({query: {s: "apple"}, sort: {n: -1}, remove: true, collation: loose}).s);
assert.eq(1, coll.deleteMany({s: "aPPLE"}, {collation: loose}).deletedCount);
assert.commandWorked(coll.bulkWrite([{deleteOne: {filter: {s: "BANANA"}, collation: loose}}]));
assert.eq([4, 5], ids({}, loose));

const refused = (code, collation) =>
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), collation: collation}), code, () => tojson(collation));
refused(ErrorCodes.TypeMismatch, "en");
refused(40414, {strength: 1});
refused(40415, {locale: "en", Strength: 1});
refused(ErrorCodes.BadValue, {locale: "xx"});
refused(ErrorCodes.BadValue, {locale: "en", strength: 6});
refused(ErrorCodes.BadValue, {locale: "en", strength: 1, caseFirst: "upper"});
refused(ErrorCodes.IncompatibleCollationVersion, {locale: "en", version: "9"});
