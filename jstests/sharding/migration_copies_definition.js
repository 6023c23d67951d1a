/**
 * A shard that never had the collection receives its options, indexes and UUID with the first range.
 * It fails if the recipient's collection lacks an index or option, has another UUID, or a unique index does not hold there.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshDatabase, moveRange, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "migration_copies_definition", first);
const coll = testDB.c;
assert.commandWorked(testDB.createCollection("c", {
    validator: {v: {$type: "number"}}, validationLevel: "moderate", validationAction: "error",
}));
assert.commandWorked(coll.createIndex({x: 1, v: 1}, {unique: true, name: "uniquely"}));
assert.commandWorked(coll.createIndex({v: -1}, {sparse: true}));
assert.commandWorked(coll.createIndex({when: 1}, {expireAfterSeconds: 3600}));
assert.commandWorked(coll.createIndex({t: 1}, {partialFilterExpression: {t: {$gt: 5}}}));
assert.commandWorked(coll.createIndex({"deep.er": "hashed"}));
assert.commandWorked(coll.createIndex({x: 1}));
assert.commandWorked(db.adminCommand({shardCollection: coll.getFullName(), key: {x: 1}}));
assert.commandWorked(coll.insert([{_id: 1, x: -1, v: 1}, {_id: 2, x: 1, v: 1}]));

const direct = shardConnection(db, second).getDB(testDB.getName());
assert.eq([], direct.getCollectionInfos({name: "c"}));
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);

const source = shardConnection(db, first).getDB(testDB.getName()).getCollectionInfos({name: "c"})[0];
const copy = direct.getCollectionInfos({name: "c"})[0];
assert.docEq(source.options, copy.options);
assert.eq(source.info.uuid, copy.info.uuid);
assert.eq(collectionEntry(coll).uuid, copy.info.uuid);
const byName = (a, b) => a.name < b.name ? -1 : 1;
const indexes = shardConnection(db, first).getDB(testDB.getName()).c.getIndexes().sort(byName);
assert.eq(7, indexes.length);
assert.eq(indexes, direct.c.getIndexes().sort(byName));

// They hold.
assert.commandFailedWithCode(coll.insert({_id: 3, x: 1, v: 1}), 11000);
assert.commandFailedWithCode(coll.insert({_id: 3, x: 1, v: "text"}), 121);
assert.commandWorked(coll.insert({_id: 3, x: 1, v: 2}));
assert.eq(2, coll.find({x: 1}).hint("uniquely").itcount());
assert.eq(3, coll.find({v: {$gt: 0}}).hint({v: -1}).itcount());

// A new index comes to both, a dropped one goes from both.
assert.commandWorked(coll.createIndex({later: 1}));
assert.commandWorked(coll.dropIndex("v_-1"));
for (const name of [first, second]) {
    const names = shardConnection(db, name).getDB(testDB.getName()).c.getIndexes().map((i) => i.name);
    assert(names.includes("later_1") && !names.includes("v_-1"), tojson(names));
}

// A recipient that has the collection but lacks an index gets it when it is empty there.
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, first);
assert.commandWorked(direct.c.dropIndex("later_1"));
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);
assert(direct.c.getIndexes().some((i) => i.name === "later_1"));
assert.commandWorked(testDB.dropDatabase());
