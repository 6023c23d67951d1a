/**
 * A collection becomes capped through a router, which must not be shown the copy that is made for it.
 * It fails if the copy's placement is asked for, documents are lost, or a sharded collection is converted.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const testDB = freshDatabase(db, "convert_to_capped_through_router");
const coll = testDB.c;
assert.commandWorked(coll.insert(Array.from({length: 10}, (_, i) => ({_id: i}))));
assert.commandWorked(testDB.runCommand({convertToCapped: "c", size: 100000}));
assert.eq(true, coll.stats().capped);
assert.eq(10, coll.find().itcount());
assert.commandWorked(coll.insert({_id: 10}));
assert.eq(["c"], testDB.getCollectionNames());
assert.commandFailedWithCode(testDB.runCommand({convertToCapped: "none", size: 1000}), 26);
assert.commandFailedWithCode(testDB.runCommand({convertToCapped: "c", size: -1}), 72);
assert.commandFailedWithCode(testDB.runCommand({convertToCapped: "c"}), 72);
assert.commandWorked(db.adminCommand({shardCollection: testDB.s.getFullName(), key: {x: 1}}));
assert.commandFailedWithCode(testDB.runCommand({convertToCapped: "s", size: 1000}), 20);
assert.eq(["c", "s"], testDB.getCollectionNames().sort());
assert.commandWorked(testDB.dropDatabase());
