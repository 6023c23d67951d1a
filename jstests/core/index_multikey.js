/**
 * An index over an array has a key for each element.
 * Fails when a query through such an index returns a document twice, misses one, or tightens bounds that elements may meet apart.
 */
import {planHasStage, planStages} from "jstests/libs/plan_stages.js";

const coll = db.index_multikey;
coll.drop();
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({"o.x": 1, "o.y": 1}));
assert.commandWorked(coll.insert([
    {_id: 0, a: 5},
    {_id: 1, a: [1, 5, 9]},
    {_id: 2, a: [5, 5]},
    {_id: 3, a: []},
    {_id: 4, a: [[5], 2]},
    {_id: 5, o: [{x: 1, y: 2}, {x: 3, y: 4}]},
    {_id: 6, o: {x: 1, y: 4}},
]));

function ids(filter, hint) {
    return coll.find(filter).hint(hint).toArray().map(doc => doc._id).sort();
}
assert.eq([0, 1, 2], ids({a: 5}, {a: 1}));
assert.eq([0, 1, 2, 4], ids({a: {$gte: 1}}, {a: 1}));
// One element above six and another below three.
assert.eq([1], ids({a: {$gt: 6, $lt: 3}}, {a: 1}));
assert.eq([4], ids({a: [5]}, {a: 1}));
assert.eq([3], ids({a: []}, {a: 1}));
assert.eq([1], ids({a: {$all: [1, 9]}}, {a: 1}));
assert.eq([5, 6], ids({"o.x": 1, "o.y": 4}, {"o.x": 1, "o.y": 1}));
assert.eq([5], ids({o: {$elemMatch: {x: 3, y: 4}}}, {"o.x": 1, "o.y": 1}));
assert.eq([], ids({o: {$elemMatch: {x: 1, y: 4}}}, {"o.x": 1, "o.y": 1}));

const scans = planStages(coll.find({a: 5}).hint({a: 1}).explain()).filter(stage => stage.stage == "IXSCAN");
assert.lt(0, scans.length);
assert(scans.some(scan => scan.isMultiKey), tojson(scans));
assert(scans.some(scan => bsonWoCompare({a: ["a"]}, scan.multiKeyPaths) == 0), tojson(scans));
const below = planStages(coll.find({"o.x": 1}).hint({"o.x": 1, "o.y": 1}).explain()).filter(stage => stage.stage == "IXSCAN");
assert(below.some(scan => bsonWoCompare({"o.x": ["o"], "o.y": ["o"]}, scan.multiKeyPaths) == 0), tojson(below));
// One element satisfies all that stands in an $elemMatch, so its fields are bounded together.
const together = planStages(coll.find({o: {$elemMatch: {x: 3, y: 4}}}).hint({"o.x": 1, "o.y": 1}).explain());
const bounded = together.filter(stage => stage.stage == "IXSCAN").map(scan => scan.indexBounds["o.y"]);
assert(bounded.length > 0 && bounded.every(list => list[0] !== "[MinKey, MaxKey]"), tojson(together));

// Arrays in one field of an index do not concern the others.
coll.drop();
assert.commandWorked(coll.createIndex({t: 1, tags: 1}));
assert.commandWorked(coll.insert([...Array(100).keys()].map(i => ({_id: i, t: i, tags: ["x", "y" + i]}))));
const between = () => coll.find({t: {$gte: 50, $lt: 53}}).sort({t: -1});
assert.eq([52, 51, 50], between().toArray().map(doc => doc._id));
const explained = between().explain("executionStats");
assert(!planHasStage(explained, "SORT"), tojson(explained.queryPlanner));
assert.lt(explained.executionStats.totalKeysExamined, 20);
assert(planHasStage(coll.find({t: {$gte: 50}}).sort({tags: 1}).explain(), "SORT"));

// Two arrays cannot be indexed together, in whichever order they come.
coll.drop();
assert.commandWorked(coll.createIndex({p: 1, q: 1}));
assert.commandWorked(coll.insert({_id: 1, p: [1, 2], q: 1}));
assert.commandWorked(coll.insert({_id: 2, p: 1, q: [1, 2]}));
assert.commandFailedWithCode(coll.insert({_id: 3, p: [1], q: [2]}), 171);
assert.commandFailedWithCode(coll.update({_id: 1}, {$push: {r: 1}, $set: {q: [3]}}), 171);
assert.eq([{_id: 1, p: [1, 2], q: 1}, {_id: 2, p: 1, q: [1, 2]}], coll.find().sort({_id: 1}).toArray());
