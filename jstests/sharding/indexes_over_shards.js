/**
 * Indexes of a sharded collection exist on every shard that owns a range of it, the same everywhere.
 * It fails if a shard is left out of createIndexes or dropIndexes, or the key's last index can be dropped.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, moveRange, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "indexes_over_shards", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{x: -1, u: 1}, {x: 1, u: 1}]));
const on = (shard) => shardConnection(db, shard).getDB(testDB.getName()).c.getIndexes().map((i) => i.name).sort();
const everywhere = (names) => {
    assert.eq(names.slice().sort(), on(first));
    assert.eq(names.slice().sort(), on(second));
    assert.eq(names.slice().sort(), coll.getIndexes().map((i) => i.name).sort());
};
everywhere(["_id_", "x_1"]);

let reply = assert.commandWorked(testDB.runCommand(
    {createIndexes: "c", indexes: [{key: {y: 1}, name: "y_1"}, {key: {z: -1}, name: "zee", sparse: true}]}));
assert.eq(2, Object.keys(reply.raw).length, tojson(reply));
Object.entries(reply.raw).forEach(([host, answer]) => {
    assert(host.includes("/"), host);
    assert.eq(2, answer.numIndexesBefore);
    assert.eq(4, answer.numIndexesAfter);
    assert.eq(1, answer.ok);
});
everywhere(["_id_", "x_1", "y_1", "zee"]);
reply = assert.commandWorked(testDB.runCommand({createIndexes: "c", indexes: [{key: {y: 1}, name: "y_1"}]}));
assert(Object.values(reply.raw).every((a) => a.note === "all indexes already exist"), tojson(reply));

// The same name for another key, the same key under another name.
assert.commandFailedWithCode(testDB.runCommand({createIndexes: "c", indexes: [{key: {w: 1}, name: "y_1"}]}), 86);
assert.commandFailedWithCode(testDB.runCommand({createIndexes: "c", indexes: [{key: {y: 1}, name: "why"}]}), 85);
everywhere(["_id_", "x_1", "y_1", "zee"]);

// Unique only with the key in front.
assert.commandFailedWithCode(coll.createIndex({u: 1}, {unique: true}), 67);
assert.commandFailedWithCode(coll.createIndex({u: 1, x: 1}, {unique: true}), 67);
assert.commandWorked(coll.createIndex({x: 1, u: 1}, {unique: true}));
everywhere(["_id_", "x_1", "x_1_u_1", "y_1", "zee"]);
assert.commandFailedWithCode(coll.insert({x: 1, u: 1}), 11000);

// A build that fails on one shard is an error, though another shard has built the index.
assert.commandWorked(coll.insert([{x: 5, d: 1}, {x: 5, d: 1}].map((d, i) => Object.assign(d, {u: i + 10}))));
assert.commandFailedWithCode(coll.createIndex({x: 1, d: 1}, {unique: true}), 11000);
assert(!on(second).includes("x_1_d_1"));
if (on(first).includes("x_1_d_1")) {
    assert.commandWorked(shardConnection(db, first).getDB(testDB.getName()).c.dropIndex("x_1_d_1"));
}

// Dropping: by name, key, list, all.
assert.commandWorked(coll.dropIndex("y_1"));
assert.commandWorked(coll.dropIndex({z: -1}));
everywhere(["_id_", "x_1", "x_1_u_1"]);
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: "absent"}), 27);
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: "_id_"}), 72);

// The key needs an index: one of the two must stay.
assert.commandWorked(coll.dropIndex("x_1"));
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: "x_1_u_1"}), 370);
everywhere(["_id_", "x_1_u_1"]);
assert.commandWorked(coll.createIndexes([{a: 1}, {b: 1}]));
assert.commandWorked(testDB.runCommand({dropIndexes: "c", index: ["a_1", "b_1"]}));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(testDB.runCommand({dropIndexes: "c", index: "*"}));
everywhere(["_id_", "x_1_u_1"]);

// A shard that owns nothing any more is not asked.
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, first);
reply = assert.commandWorked(testDB.runCommand({createIndexes: "c", indexes: [{key: {only: 1}, name: "only"}]}));
assert(on(first).includes("only"));
assert(!on(second).includes("only"));
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);
everywhere(["_id_", "x_1_u_1", "only"]);
assert.commandWorked(testDB.dropDatabase());
