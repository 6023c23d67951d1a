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

// One that was moved becomes capped where it is, and the catalog knows it as what it is then.
const [first, second] = shardNames(db);
const config = db.getSiblingDB("config");
const entry = () => config.collections.findOne({_id: testDB.m.getFullName()});
const primary = config.databases.findOne({_id: testDB.getName()}).primary;
assert.commandWorked(testDB.m.insert(Array.from({length: 10}, (_, i) => ({_id: i, pad: "p".repeat(100)}))));
assert.commandWorked(testDB.m.createIndex({pad: 1}));
const other = primary === first ? second : first;
for (const shard of [other, primary]) {
    assert.commandWorked(db.adminCommand({moveCollection: testDB.m.getFullName(), toShard: other}));
    assert.commandWorked(db.adminCommand({moveCollection: testDB.m.getFullName(), toShard: shard}));
    const before = entry();
    assert.commandFailedWithCode(testDB.runCommand({convertToCapped: "m", size: -1}), 72);
    assert.eq(before, entry());
    assert.commandWorked(testDB.runCommand({convertToCapped: "m", size: 100000}));
    assert.neq(before.uuid, entry().uuid);
    assert.eq([true, shard], [entry().unsplittable, config.chunks.findOne({uuid: entry().uuid}).shard]);
    assert.eq(0, config.chunks.find({uuid: before.uuid}).itcount());
    assert.eq(true, testDB.m.stats().capped);
    assert.eq(Array.from({length: 10}, (_, i) => i), testDB.m.find().sort({$natural: 1}).toArray().map((d) => d._id));
    assert.commandWorked(testDB.m.insert({_id: 10}));
    assert.commandWorked(testDB.m.updateOne({_id: 10}, {$set: {x: 1}}));
    assert.eq([], testDB.runCommand({checkMetadataConsistency: 1, checkIndexes: true}).cursor.firstBatch);
    assert.sameMembers(["c", "m", "s"], testDB.getCollectionNames());
    // What falls out at the old end makes room.
    assert.commandWorked(testDB.runCommand({convertToCapped: "m", size: 4096}));
    assert.commandWorked(testDB.m.insert(Array.from({length: 100}, (_, i) => ({pad: "p".repeat(100), i}))));
    assert.lt(testDB.m.countDocuments({}), 60);
    assert.commandWorked(testDB.m.drop() && testDB.m.insert(Array.from({length: 10}, (_, i) => ({_id: i}))));
}
assert.commandWorked(testDB.dropDatabase());
