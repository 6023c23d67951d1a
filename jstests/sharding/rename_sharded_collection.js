/**
 * A sharded collection keeps its chunks and documents under a new name, and may replace another one.
 * It fails if a shard keeps the old name, chunks are lost, or a target is replaced without being asked.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    collectionEntry,
    freshDatabase,
    shardByRanges,
    shardConnection,
    shardNames
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "rename_sharded_collection", first);
const rename = (from, to, more) => db.adminCommand(Object.assign(
    {renameCollection: `${testDB.getName()}.${from}`, to: `${testDB.getName()}.${to}`}, more));

shardByRanges(testDB.a, {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(testDB.a.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
assert.commandWorked(testDB.a.createIndex({y: 1}));
const before = collectionEntry(testDB.a);
const chunks = chunksOf(testDB.a);

assert.commandWorked(rename("a", "b"));
assert.eq(null, collectionEntry(testDB.a));
const after = collectionEntry(testDB.b);
assert.eq(before.uuid, after.uuid);
assert.eq(before.key, after.key);
assert.neq(before.lastmodEpoch, after.lastmodEpoch);
assert.eq(chunks.map((c) => [c.min, c.max, c.shard]), chunksOf(testDB.b).map((c) => [c.min, c.max, c.shard]));
assert.eq(2, testDB.b.find().itcount());
assert.eq(0, testDB.a.find().itcount());
assert.eq(3, testDB.b.getIndexes().length);
for (const name of [first, second]) {
    const names = shardConnection(db, name).getDB(testDB.getName()).getCollectionNames();
    assert.eq(["b"], names, name);
}
assert.commandWorked(testDB.b.insert([{_id: 3, x: 5}, {_id: 4, x: -5}]));
assert.eq(2, shardConnection(db, second).getDB(testDB.getName()).b.find().itcount());

// Onto another: only with dropTarget.
shardByRanges(testDB.target, {_id: 1}, [{_id: 0}], [second, first]);
assert.commandWorked(testDB.target.insert([{_id: -1, old: true}, {_id: 1, old: true}]));
const replaced = collectionEntry(testDB.target);
assert.commandFailedWithCode(rename("b", "target"), 48);
assert.eq(2, testDB.target.find({old: true}).itcount());
assert.commandWorked(rename("b", "target", {dropTarget: true}));
assert.eq(4, testDB.target.find().itcount());
assert.eq(before.uuid, collectionEntry(testDB.target).uuid);
assert.eq(0, db.getSiblingDB("config").chunks.find({uuid: replaced.uuid}).itcount());
assert.eq({x: 1}, collectionEntry(testDB.target).key);

// Onto and from an unsharded one.
assert.commandWorked(testDB.plain.insert({_id: "p"}));
assert.commandWorked(rename("plain", "target", {dropTarget: true}));
assert.eq(["p"], testDB.target.find().toArray().map((d) => d._id));
assert.eq(null, collectionEntry(testDB.target));
assert.eq([], shardConnection(db, second).getDB(testDB.getName()).getCollectionNames());

// Errors.
assert.commandFailedWithCode(rename("absent", "new"), 26);
assert.commandFailedWithCode(rename("target", "target"), 20);
assert.commandFailedWithCode(
    db.adminCommand({renameCollection: testDB.target.getFullName(), to: "nodot"}), 73);
shardByRanges(testDB.s, {x: 1}, [{x: 0}], [first, second]);
const elsewhere = db.adminCommand({renameCollection: testDB.s.getFullName(), to: "rename_sharded_elsewhere.s"});
assert.commandFailed(elsewhere, "a sharded collection stays in its database");
assert.commandWorked(testDB.dropDatabase());
