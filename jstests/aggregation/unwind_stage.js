/**
 * $unwind makes one document of each array element.
 * Fails when an element is lost, a scalar or missing field is treated as an array of another length, or the index counts wrongly.
 */
const coll = db.unwind_stage;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, a: [1, 2, 3]},
    {_id: 1, a: []},
    {_id: 2},
    {_id: 3, a: null},
    {_id: 4, a: 7},
    {_id: 5, a: [[8, 9], null]},
    {_id: 6, a: {b: [1, 2]}},
]));

function run(unwind) {
    return coll.aggregate([{$sort: {_id: 1}}, {$unwind: unwind}]).toArray();
}
assert.eq([
    {_id: 0, a: 1}, {_id: 0, a: 2}, {_id: 0, a: 3}, {_id: 4, a: 7}, {_id: 5, a: [8, 9]}, {_id: 5, a: null}, {_id: 6, a: {b: [1, 2]}},
], run("$a"));
assert.eq(run("$a"), run({path: "$a"}));
assert.eq([{_id: 6, a: {b: 1}}, {_id: 6, a: {b: 2}}], run("$a.b"));

const kept = run({path: "$a", preserveNullAndEmptyArrays: true});
assert.eq([0, 0, 0, 1, 2, 3, 4, 5, 5, 6], kept.map(doc => doc._id));
assert.eq([{_id: 1}, {_id: 2}, {_id: 3, a: null}], kept.filter(doc => [1, 2, 3].includes(doc._id)));

const indexed = run({path: "$a", includeArrayIndex: "at", preserveNullAndEmptyArrays: true});
assert.eq([0, 1, 2], indexed.filter(doc => doc._id == 0).map(doc => Number(doc.at)));
assert.eq([null], indexed.filter(doc => doc._id == 4).map(doc => doc.at));
assert.eq([null], indexed.filter(doc => doc._id == 1).map(doc => doc.at));
assert.eq("long", coll.aggregate([{$match: {_id: 0}}, {$unwind: {path: "$a", includeArrayIndex: "at"}}, {$limit: 1}, {$project: {t: {$type: "$at"}}}]).toArray()[0].t);
assert.eq([{_id: 0, n: 3}], coll.aggregate([{$match: {_id: 0}}, {$unwind: "$a"}, {$group: {_id: "$_id", n: {$sum: 1}}}]).toArray());
assert.eq({_id: 0, a: 2, o: {i: NumberLong(1)}}, coll.aggregate([{$match: {_id: 0}}, {$unwind: {path: "$a", includeArrayIndex: "o.i"}}, {$skip: 1}, {$limit: 1}]).toArray()[0]);

function refused(codes, unwind) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$unwind: unwind}], cursor: {}}), codes, () => tojson(unwind));
}
refused(15981, 1);
refused(28812, {});
refused(28808, {path: 1});
refused(28818, "a");
refused(28809, {path: "$a", preserveNullAndEmptyArrays: 1});
refused(28810, {path: "$a", includeArrayIndex: 1});
refused(28810, {path: "$a", includeArrayIndex: ""});
refused(28822, {path: "$a", includeArrayIndex: "$i"});
refused(28811, {path: "$a", unheardOf: 1});
