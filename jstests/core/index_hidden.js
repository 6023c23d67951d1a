/**
 * A hidden index is kept up to date and never chosen, so that one can try how it would be without.
 * Fails when a hidden index serves a query, or is out of date when it is shown again.
 */
import {planIndexes} from "jstests/libs/plan_stages.js";

const coll = db.index_hidden;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, a: i}))));
assert.commandWorked(coll.createIndex({a: 1}));
assert.eq(["a_1"], planIndexes(coll.find({a: 5}).explain()));

const hide = assert.commandWorked(coll.hideIndex("a_1"));
assert.eq([], planIndexes(coll.find({a: 5}).explain()));
assert.eq(1, coll.find({a: 5}).itcount());
assert.eq(true, coll.getIndexes().filter(index => index.name == "a_1")[0].hidden);
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {a: 5}, hint: {a: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {a: 5}, hint: "a_1"}), ErrorCodes.BadValue);

// What is written meanwhile is in the index.
assert.commandWorked(coll.insert({_id: 100, a: 100}));
assert.commandWorked(coll.remove({_id: 5}));
assert.commandWorked(coll.unhideIndex({a: 1}));
assert.eq(["a_1"], planIndexes(coll.find({a: 100}).explain()));
assert.eq(1, coll.find({a: 100}).hint({a: 1}).itcount());
assert.eq(0, coll.find({a: 5}).hint({a: 1}).itcount());

assert.commandWorked(coll.createIndex({b: 1}, {hidden: true}));
assert.eq([], planIndexes(coll.find({b: 1}).explain()));
assert.commandFailedWithCode(coll.hideIndex("_id_"), ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.hideIndex("none"), ErrorCodes.IndexNotFound);
