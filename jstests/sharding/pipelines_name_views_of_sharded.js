/**
 * A stage that names a view reads all of what is below the view, wherever that is: on an unsharded collection a pipeline runs on the primary
 * shard as a whole, which holds only its own part of a sharded collection.
 * Fails when a shard resolves such a view without a look at what is below it, or reads a collection that a router believes to be unsharded
 * and is not.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "pipelines_name_views", first);
const name = testDB.getName();
assert.commandWorked(testDB.plain.insert([{_id: 1, k: 5}, {_id: 2, k: 15}]));
assert.commandWorked(db.adminCommand({shardCollection: name + ".spread", key: {k: 1}}));
assert.commandWorked(db.adminCommand({split: name + ".spread", middle: {k: 10}}));
assert.commandWorked(db.adminCommand({moveChunk: name + ".spread", find: {k: 10}, to: second, _waitForDelete: true}));
assert.commandWorked(testDB.spread.insert([{_id: "a", k: 5, next: 15}, {_id: "b", k: 15}]));
assert.commandWorked(testDB.createView("seen", "spread", [{$set: {seen: true}}]));
assert.commandWorked(testDB.createView("further", "seen", [{$match: {k: {$gt: 0}}}]));

function check(of, foreign) {
    const lookup = {$lookup: {from: foreign, localField: "k", foreignField: "k", as: "found"}};
    assert.eq([[1, ["a"]], [2, ["b"]]], of.aggregate([lookup, {$sort: {_id: 1}}]).toArray().map(d => [d._id, d.found.map(f => f._id)]), foreign);
    const union = {$unionWith: {coll: foreign, pipeline: [{$match: {k: {$gt: 0}}}]}};
    assert.eq([1, 2, "a", "b"], of.aggregate([union, {$sort: {_id: 1}}]).toArray().map(d => d._id), foreign);
    const graph = {$graphLookup: {from: foreign, startWith: "$k", connectFromField: "next", connectToField: "k", as: "found"}};
    const reached = of.aggregate([{$match: {_id: 1}}, graph]).toArray()[0].found.map(f => f._id).sort();
    assert.eq(["a", "b"], reached, foreign);
}
for (const foreign of ["spread", "seen", "further"]) {
    check(testDB.plain, foreign);
}
assert.commandWorked(testDB.createView("plainly", "plain", []));
check(testDB.plainly, "further");

// A router that learned of the collection before it was sharded.
const other = new Mongo(db.getMongo().host).getDB(name);
assert.commandWorked(testDB.later.insert([{_id: "a", k: 5, next: 15}, {_id: "b", k: 15}]));
check(other.plain, "later");
assert.commandWorked(testDB.later.createIndex({k: 1}));
assert.commandWorked(db.adminCommand({shardCollection: name + ".later", key: {k: 1}}));
assert.commandWorked(db.adminCommand({split: name + ".later", middle: {k: 10}}));
assert.commandWorked(db.adminCommand({moveChunk: name + ".later", find: {k: 10}, to: second, _waitForDelete: true}));
check(other.plain, "later");

// What is asked of a database that does not exist is looked at as any other.
const nowhere = db.getSiblingDB("pipelines_name_views_nowhere");
assert.commandFailedWithCode(nowhere.runCommand({aggregate: "c", pipeline: [{$nosuch: 1}], cursor: {}}), 40324);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", filter: "x"}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", filter: {$nosuch: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", projection: {a: 1, b: 0}}), 31254);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", sort: {a: 5}}), 15975);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", collation: {locale: "nosuch"}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(nowhere.runCommand({find: "c", hint: 5}), ErrorCodes.FailedToParse);
assert.commandFailedWithCode(nowhere.runCommand({count: "c", query: {$nosuch: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(nowhere.runCommand({distinct: "c", key: "a", query: {$nosuch: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(nowhere.runCommand({listCollections: 1, cursor: {batchSize: -1}}), ErrorCodes.BadValue);
const sensible = {filter: {a: 1}, projection: {a: 1}, sort: {a: 1}, collation: {locale: "de"}, hint: {a: 1}};
assert.eq([], assert.commandWorked(nowhere.runCommand(Object.assign({find: "c"}, sensible))).cursor.firstBatch);
testDB.dropDatabase();
