/**
 * A collection's default collation holds for every command that names none, for its index on _id and for new indexes; a view has its own.
 * Fails when a command forgets the default, an index is not made by it, or a view can be read by another collation than its own.
 */
// The fixture may shard collections, whose indexes must be simple.
// @tags: [assumes_unsharded_collection]
import {planIndexes} from "jstests/libs/plan_stages.js";

const name = "collation_of_collections";
const coll = db[name];
const loose = {locale: "en", strength: 2};
const full = {
    locale: "en", caseLevel: false, caseFirst: "off", strength: 2, numericOrdering: false, alternate: "non-ignorable",
    maxVariable: "punct", normalization: false, backwards: false, version: "57.1",
};
coll.drop();
assert.commandWorked(db.createCollection(name, {collation: loose}));
assert.commandWorked(db.createCollection(name, {collation: full}));
assert.commandFailedWithCode(db.createCollection(name, {collation: {locale: "en"}}), ErrorCodes.NamespaceExists);
assert.docEq(full, db.getCollectionInfos({name: name})[0].options.collation);

assert.commandWorked(coll.insert([{_id: "a", s: "x", n: 1}, {_id: "b", s: "X", n: 2}, {_id: "c", s: "y", n: 3}]));
assert.commandFailedWithCode(coll.insert({_id: "A"}), ErrorCodes.DuplicateKey);
assert.eq("a", coll.findOne({_id: "A"})._id);
assert.eq(2, coll.find({s: "x"}).itcount());
assert.eq(1, coll.find({s: "x"}).collation({locale: "simple"}).itcount());
assert.eq(0, coll.find({_id: "A"}).collation({locale: "simple"}).itcount());
assert.eq(0, coll.updateOne({_id: "A"}, {$set: {n: 9}}, {collation: {locale: "simple"}}).matchedCount);
assert.eq(1, coll.updateOne({_id: "A"}, {$set: {n: 9}}).matchedCount);
assert.eq(1, coll.deleteOne({_id: "C"}).deletedCount);
assert.eq(["x"], coll.distinct("s"));
assert.eq(2, coll.count({s: "X"}));
assert.eq(1, coll.aggregate([{$group: {_id: "$s"}}]).itcount());

// Indexes inherit, unless they name another.
assert.commandWorked(coll.createIndex({s: 1}));
assert.commandFailedWithCode(coll.createIndex({s: 1}, {collation: {locale: "fr"}}), ErrorCodes.IndexKeySpecsConflict);
assert.commandWorked(coll.createIndex({s: 1}, {name: "plain", collation: {locale: "simple"}}));
assert.commandFailedWithCode(coll.createIndex({_id: 1}, {collation: {locale: "fr"}}), ErrorCodes.BadValue);
const indexes = Object.fromEntries(coll.getIndexes().map(index => [index.name, index]));
assert.docEq(full, indexes._id_.collation);
assert.docEq(full, indexes.s_1.collation);
assert.eq(undefined, indexes.plain.collation);
assert.eq(["s_1"], planIndexes(coll.find({s: "x"}).explain()));
assert.eq(["plain"], planIndexes(coll.find({s: "x"}).collation({locale: "simple"}).explain()));
assert.eq([], planIndexes(coll.find({s: "x"}).collation({locale: "fr"}).explain()));
assert.neq([], planIndexes(coll.find({s: 5}).collation({locale: "fr"}).explain()), "numbers stand alike in every index");
assert.eq(["a", "b"], coll.find({s: "X"}).hint("s_1").sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq(["b"], coll.find({s: "X"}).collation({locale: "simple"}).hint("s_1").toArray().map(doc => doc._id));
assert.eq(["a", "b"], coll.find({s: {$gte: "W", $lt: "Z"}}).sort({s: 1, _id: 1}).toArray().map(doc => doc._id));
assert.eq(2, coll.find().min({s: "W"}).max({s: "Y"}).hint("s_1").itcount());
assert.commandWorked(coll.createIndex({u: 1}, {unique: true, sparse: true}));
assert.commandWorked(coll.insert({_id: 1, u: "Q"}));
const [taken] = db.runCommand({insert: name, documents: [{_id: 2, u: "q"}]}).writeErrors;
assert.eq(ErrorCodes.DuplicateKey, taken.code);
assert.docEq(full, taken.collation);

// A validator compares by the collection's collation too.
assert.commandWorked(db.runCommand({collMod: name, validator: {$or: [{kind: "good"}, {kind: {$exists: false}}]}}));
assert.commandWorked(coll.insert({_id: 3, kind: "GOOD"}));
assert.commandFailedWithCode(coll.insert({_id: 4, kind: "bad"}), ErrorCodes.DocumentValidationFailure);

// A view inherits nothing and is read by its own collation only.
const views = ["plain", "loose", "on_loose"].map(part => `collation_views_${part}`);
views.forEach(view => db[view].drop());
assert.commandWorked(db.createView(views[0], name, []));
assert.commandWorked(db.createView(views[1], name, [], {collation: loose}));
assert.eq(1, db[views[0]].find({s: "x"}).itcount());
assert.eq(2, db[views[1]].find({s: "x"}).itcount());
assert.eq(2, db[views[1]].count({s: "x"}));
assert.eq(["x"], db[views[1]].distinct("s"));
assert.eq(2, db[views[1]].find({s: "x"}).collation(full).itcount());
const notOnView = ErrorCodes.OptionNotSupportedOnView;
assert.commandFailedWithCode(db.runCommand({find: views[1], collation: {locale: "fr"}}), notOnView);
assert.commandFailedWithCode(db.runCommand({count: views[0], collation: loose}), notOnView);
assert.commandFailedWithCode(db.createView(views[2], views[1], []), notOnView);
assert.commandWorked(db.createView(views[2], views[1], [], {collation: loose}));
assert.commandFailedWithCode(db.runCommand({
    aggregate: name, pipeline: [{$unionWith: views[1]}], cursor: {}, collation: {locale: "fr"},
}), notOnView);
assert.commandWorked(db.runCommand({aggregate: name, pipeline: [{$unionWith: views[1]}], cursor: {}}));
