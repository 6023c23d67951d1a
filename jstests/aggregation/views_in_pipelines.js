/**
 * A view stands wherever a collection may be read in a pipeline.
 * Fails when $lookup, $graphLookup or $unionWith read the collection below the view, or a pipeline over a view leaves the view's own out.
 */
const base = db.views_in_pipelines_base;
const other = db.views_in_pipelines_other;
base.drop();
other.drop();
db.views_in_pipelines_even.drop();
db.views_in_pipelines_joined.drop();
assert.commandWorked(base.insert([...Array(8).keys()].map(i => ({_id: i, parent: i - 2, v: i * 10}))));
assert.commandWorked(other.insert([{_id: "a", ref: 3}, {_id: "b", ref: 4}]));
assert.commandWorked(db.createView("views_in_pipelines_even", base.getName(), [{$match: {_id: {$mod: [2, 0]}}}, {$set: {seen: true}}]));

const even = db.views_in_pipelines_even;
assert.eq([{_id: 4, n: 40}, {_id: 6, n: 60}],
          even.aggregate([{$match: {v: {$gt: 30}, seen: true}}, {$sort: {_id: 1}}, {$project: {n: "$v"}}]).toArray());
assert.eq([{n: 4}], even.aggregate([{$count: "n"}]).toArray());
assert.eq([{_id: null, sum: 120}], even.aggregate([{$group: {_id: null, sum: {$sum: "$v"}}}]).toArray());

const lookup = {$lookup: {from: "views_in_pipelines_even", localField: "ref", foreignField: "_id", as: "m"}};
assert.eq([["a", []], ["b", [{_id: 4, parent: 2, v: 40, seen: true}]]], other.aggregate([lookup, {$sort: {_id: 1}}]).toArray().map(doc => [doc._id, doc.m]));
const piped = {$lookup: {from: "views_in_pipelines_even", let: {r: "$ref"}, pipeline: [{$match: {$expr: {$gt: ["$_id", "$$r"]}}}, {$sort: {_id: 1}}], as: "m"}};
assert.eq([[4, 6], [6]], other.aggregate([{$sort: {_id: 1}}, piped]).toArray().map(doc => doc.m.map(match => match._id)));
assert.eq([0, 2, 4, 6], other.aggregate([{$match: {none: 1}}, {$unionWith: "views_in_pipelines_even"}, {$sort: {_id: 1}}]).toArray().map(doc => doc._id));
assert.eq([2, 4, 6], other.aggregate([
    {$match: {_id: "a"}},
    {$graphLookup: {from: "views_in_pipelines_even", startWith: {$literal: 0}, connectFromField: "_id", connectToField: "parent", as: "r"}},
]).toArray()[0].r.map(doc => doc._id).sort());

// A view that joins, read like a collection.
assert.commandWorked(db.createView("views_in_pipelines_joined", other.getName(), [lookup, {$unwind: "$m"}, {$replaceWith: "$m"}]));
assert.eq([{_id: 4, v: 40}], db.views_in_pipelines_joined.find({seen: true}, {v: 1}).toArray());
assert.eq([], db.views_in_pipelines_joined.find({v: {$lt: 40}}).toArray());
