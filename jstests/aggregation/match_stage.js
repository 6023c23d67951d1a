/**
 * $match is the query language within a pipeline, wherever it stands.
 * Fails when a $match after another stage sees the stored document, or an optimization moves it across a stage that changes its fields.
 */
const coll = db.match_stage;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i, a: i % 3, b: {c: i}, tags: ["t" + i, "all"]}))));

function ids(pipeline) {
    return coll.aggregate(pipeline.concat([{$sort: {_id: 1}}])).toArray().map(doc => doc._id);
}
assert.eq([0, 3, 6, 9], ids([{$match: {a: 0}}]));
assert.eq([6, 9], ids([{$match: {a: 0}}, {$match: {"b.c": {$gt: 5}}}]));
assert.eq([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ids([{$match: {}}]));
assert.eq([], ids([{$match: {nothing: 1}}]));
assert.eq([4], ids([{$match: {tags: "t4"}}]));

// A field that was computed, renamed or removed on the way.
assert.eq([8, 9], ids([{$addFields: {a: {$multiply: ["$b.c", 10]}}}, {$match: {a: {$gte: 80}}}]));
assert.eq([2, 5, 8], ids([{$project: {renamed: "$a"}}, {$match: {renamed: 2}}]));
assert.eq([], ids([{$project: {renamed: "$a"}}, {$match: {a: 2}}]));
assert.eq([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ids([{$unset: "a"}, {$match: {a: {$exists: false}}}]));
assert.eq([1, 4, 7], ids([{$set: {a: "$b.c", old: "$a"}}, {$match: {old: 1}}]));
assert.eq([7], ids([{$sort: {_id: -1}}, {$limit: 3}, {$match: {a: 1}}]));
assert.eq([3], ids([{$sort: {_id: 1}}, {$skip: 1}, {$limit: 3}, {$match: {a: 0}}]));
assert.eq([3], ids([{$unwind: "$tags"}, {$match: {tags: "t3"}}]));
assert.eq([0, 2], ids([{$group: {_id: "$a", n: {$sum: 1}}}, {$match: {_id: {$ne: 1}}}]));
assert.eq([0], ids([{$group: {_id: "$a", n: {$sum: 1}}}, {$match: {n: 4}}]));

function refused(code, match) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$match: match}], cursor: {}}), code, () => tojson(match));
}
refused(15959, 1);
refused(15959, "a");
refused(ErrorCodes.BadValue, {$bad: 1});
refused(ErrorCodes.BadValue, {a: {$bad: 1}});
