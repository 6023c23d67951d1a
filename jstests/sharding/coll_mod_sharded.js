/**
 * collMod on a sharded collection changes every shard's part, so that a rule holds wherever a document lands.
 * It fails if a validator, an expiry or a hidden index is changed on one shard only.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "coll_mod_sharded", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.createIndex({when: 1}, {expireAfterSeconds: 100000}));
const shards = [first, second].map((name) => shardConnection(db, name).getDB(testDB.getName()));
const mod = (fields) => testDB.runCommand(Object.assign({collMod: "c"}, fields));

assert.commandWorked(mod({validator: {v: {$gte: 0}}}));
shards.forEach((shard) => assert.eq({v: {$gte: 0}}, shard.getCollectionInfos({name: "c"})[0].options.validator));
assert.commandFailedWithCode(coll.insert({x: -1, v: -1}), 121);
assert.commandFailedWithCode(coll.insert({x: 1, v: -1}), 121);
assert.commandWorked(coll.insert([{x: -1, v: 1}, {x: 1, v: 1}]));
assert.commandFailedWithCode(coll.update({x: 1}, {$set: {v: -5}}), 121);
assert.commandWorked(mod({validationAction: "warn"}));
assert.commandWorked(coll.insert([{x: -2, v: -1}, {x: 2, v: -1}]));
assert.commandWorked(mod({validationAction: "error", validationLevel: "moderate"}));
assert.commandWorked(coll.update({x: 2}, {$set: {v: -7}}));
assert.commandFailedWithCode(coll.update({x: 1}, {$set: {v: -7}}), 121);
assert.commandWorked(mod({validationLevel: "off"}));
assert.commandWorked(coll.insert({x: 3, v: -1}));

assert.commandWorked(mod({index: {name: "when_1", expireAfterSeconds: 200000}}));
assert.commandWorked(mod({index: {keyPattern: {when: 1}, hidden: true}}));
for (const shard of shards) {
    const index = shard.c.getIndexes().find((i) => i.name === "when_1");
    assert.eq(200000, index.expireAfterSeconds);
    assert.eq(true, index.hidden);
}
assert.commandWorked(mod({index: {name: "when_1", hidden: false}}));
shards.forEach((shard) => assert(!shard.c.getIndexes().find((i) => i.name === "when_1").hidden));

// Errors change nothing.
assert.commandFailedWithCode(mod({index: {name: "absent", expireAfterSeconds: 5}}), 27);
assert.commandFailedWithCode(mod({unknownField: 1}), 40415);
assert.commandFailedWithCode(mod({validator: {$bad: 1}}), 2);
assert.commandFailedWithCode(testDB.runCommand({collMod: "absent", validator: {}}), 26);
assert.eq(5, coll.find().itcount());
assert.commandWorked(testDB.dropDatabase());
