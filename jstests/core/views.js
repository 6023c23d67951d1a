/**
 * A view is a pipeline with the name of a collection, which reads go through and writes do not.
 * Fails when a read of a view misses its pipeline, a write to one is taken, or a cycle of views can be made.
 */
import {FixtureHelpers} from "jstests/libs/fixture_helpers.js";

const base = db.views_base;
for (const name of ["views_even", "views_even_big", "views_grouped", "views_natural"]) {
    db[name].drop();
}
base.drop();
assert.commandWorked(base.insert([...Array(10).keys()].map(i => ({_id: i, even: i % 2 == 0, v: i * 10}))));

assert.commandWorked(db.createView("views_even", base.getName(), [{$match: {even: true}}, {$project: {v: 1}}]));
const even = db.views_even;
assert.eq([0, 2, 4, 6, 8], even.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq({_id: 4, v: 40}, even.findOne({_id: 4}));
assert.eq(null, even.findOne({_id: 5}));
assert.eq([{v: 80}], even.find({v: {$gt: 60}}, {_id: 0}).toArray());
assert.eq(5, even.count());
assert.eq(2, even.find({v: {$gte: 60}}).count());
assert.sameMembers([0, 20, 40, 60, 80], even.distinct("v"));
assert.eq([{_id: null, s: 200}], even.aggregate([{$group: {_id: null, s: {$sum: "$v"}}}]).toArray());
assert.eq(5, even.find().batchSize(2).itcount());

// The order of the collection itself is a hint, whether it is asked for as a sort or as a hint. Several shards have no common one.
const natural = cursor => cursor.toArray().map(doc => doc._id);
assert.commandWorked(db.createView("views_natural", base.getName(), []));
if (!FixtureHelpers.isSharded(base)) {
    const backwards = natural(db.views_natural.find().hint({$natural: -1}));
    assert.eq(backwards, natural(db.views_natural.find().sort({$natural: -1})));
    assert.eq(backwards.slice().reverse(), natural(db.views_natural.find().sort({$natural: 1})));
    assert.eq(backwards.slice(0, 2), natural(db.views_natural.find().sort({$natural: -1}).limit(2)));
}
assert.sameMembers([...Array(10).keys()], natural(db.views_natural.find().sort({$natural: -1})));
assert.eq(10, db.views_natural.find().hint({$natural: 1}).itcount());
assert(db.views_natural.drop());

// A view of a view.
assert.commandWorked(db.createView("views_even_big", "views_even", [{$match: {v: {$gte: 40}}}]));
assert.eq([4, 6, 8], db.views_even_big.find().sort({_id: 1}).toArray().map(doc => doc._id));
assert.commandWorked(db.createView("views_grouped", base.getName(), [{$group: {_id: "$even", n: {$sum: 1}}}]));
assert.eq([{_id: false, n: 5}, {_id: true, n: 5}], db.views_grouped.find().sort({_id: 1}).toArray());

// What is inserted below shows at once.
assert.commandWorked(base.insert({_id: 20, even: true, v: 200}));
assert.eq(6, even.find().itcount());

const writes = [
    {insert: "views_even", documents: [{_id: 99}]},
    {update: "views_even", updates: [{q: {}, u: {$set: {v: 1}}}]},
    {delete: "views_even", deletes: [{q: {}, limit: 0}]},
    {findAndModify: "views_even", query: {}, update: {$set: {v: 1}}},
    {createIndexes: "views_even", indexes: [{key: {v: 1}, name: "v_1"}]},
    {listIndexes: "views_even"},
];
for (const command of writes) {
    assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.CommandNotSupportedOnView, () => tojson(command));
}
assert.eq(11, base.find().itcount());

assert.commandFailedWithCode(db.runCommand({collMod: "views_even", viewOn: "views_even_big", pipeline: []}), ErrorCodes.GraphContainsCycle);
assert.commandFailedWithCode(db.runCommand({create: "views_bad", viewOn: base.getName(), pipeline: [{$unheardOf: 1}]}), 40324);
const large = [{$match: {x: "A".repeat(16000000)}}];
assert.commandFailedWithCode(db.runCommand({create: "views_bad", viewOn: base.getName(), pipeline: large}), 195);
// No collection has such a name, so the view is empty.
if (db.hello().msg !== "isdbgrid") {
    assert.commandWorked(db.runCommand({create: "views_on_long", viewOn: "x".repeat(300), pipeline: []}));
    assert.eq([], db.views_on_long.find().toArray());
    assert(db.views_on_long.drop());
}
assert.commandFailedWithCode(db.runCommand({create: "views_bad", viewOn: base.getName(), pipeline: [{$out: "x"}]}), ErrorCodes.OptionNotSupportedOnView);
assert.commandWorked(db.runCommand({collMod: "views_even", viewOn: base.getName(), pipeline: [{$match: {_id: 1}}]}));
assert.eq([1], even.find().toArray().map(doc => doc._id));
assert(even.drop());
assert.eq(11, base.find().itcount());

// Definitions are written by commands alone: one written by hand would be checked by nobody, and make no view.
const definitions = db.getCollection("system.views");
const byHand = {_id: `${db}.views_by_hand`, viewOn: base.getName(), pipeline: []};
const refused = reply => assert.commandFailedWithCode(reply, ErrorCodes.InvalidNamespace);
const before = definitions.find().sort({_id: 1}).toArray();
refused(definitions.insert(byHand));
refused(definitions.insert({_id: 1}));
refused(definitions.update({}, {$set: {viewOn: "other"}}));
refused(definitions.remove({}));
refused(db.runCommand({findAndModify: "system.views", query: {_id: byHand._id}, update: byHand, upsert: true}));
refused(db.runCommand({findAndModify: "system.views", query: {}, remove: true}));
const bulk = db.adminCommand({bulkWrite: 1, ops: [{insert: 0, document: byHand}], nsInfo: [{ns: definitions.getFullName()}]});
assert.eq(ErrorCodes.InvalidNamespace, bulk.ok ? bulk.cursor.firstBatch[0].code : bulk.code, tojson(bulk));
assert.eq(before, definitions.find().sort({_id: 1}).toArray());
// Nor is the profile written by hand.
refused(db.getCollection("system.profile").insert({op: "query"}));

// Views of views end at the twentieth.
const chain = db.getSiblingDB("views_chain");
chain.dropDatabase();
for (let i = 1; i <= 20; i++) {
    assert.commandWorked(chain.createView(`v${i}`, i === 1 ? "base" : `v${i - 1}`, []));
}
assert.commandFailedWithCode(chain.createView("v21", "v20", []), ErrorCodes.ViewDepthLimitExceeded);
assert.eq(0, chain.v19.find().itcount());
chain.dropDatabase();
