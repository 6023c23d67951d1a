/**
 * While a migration commits, writes to the moving range wait and then land on the new owner; other ranges of it do too.
 * It fails if a write in the critical section is taken by the donor, is refused, or the section outlives the commit.
 *
 * @tags: [requires_sharding]
 */
import {
    dropWithRemains,
    freshCollection,
    heldBy,
    inBackground,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_critical_section", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
for (let x = -5; x < 5; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = shardConnection(db, first);

let move;
whileHung(donor, "moveChunkHangAtStep5", (point) => {
    move = inBackground(db, {moveRange: coll.getFullName(), min: {x: 0}, max: {x: MaxKey}, toShard: second});
    point.wait();

    // A write with a limit on its time runs out of it; nothing is written.
    const insert = {insert: "c", documents: [{_id: 100, x: 100}], maxTimeMS: 1000};
    assert.commandFailedWithCode(testDB.runCommand(insert), 50);
    const update = {update: "c", updates: [{q: {x: 1}, u: {$set: {v: 1}}}], maxTimeMS: 1000};
    assert.commandFailedWithCode(testDB.runCommand(update), 50);
    assert.eq(0, donor.getDB(testDB.getName()).c.find({_id: 100}).itcount());
});
assert.commandWorked(move.returnData());
assert.eq(second, db.getSiblingDB("config").chunks.findOne({min: {x: 0}, shard: second}).shard);
assert.eq(0, coll.find({_id: 100}).itcount());
assert.eq(10, coll.find().itcount());
assert.commandWorked(coll.insert({_id: 100, x: 100}));

// A write that waits is done by the new owner as soon as the commit is through.
let waiting;
whileHung(donor, "moveChunkHangAtStep5", (point) => {
    move = inBackground(db, {moveRange: coll.getFullName(), min: {x: -3}, max: {x: 0}, toShard: second});
    point.wait();
    waiting = new Thread(function(host, name) {
        return new Mongo(host).getDB(name).runCommand({insert: "c", documents: [{_id: 200, x: -2}]});
    }, db.getMongo().host, testDB.getName());
    waiting.start();
    sleep(300);
    assert.eq(0, donor.getDB(testDB.getName()).c.find({_id: 200}).itcount());
});
assert.commandWorked(move.returnData());
assert.eq(1, assert.commandWorked(waiting.returnData()).n);
assert.eq(1, shardConnection(db, second).getDB(testDB.getName()).c.find({_id: 200}).itcount());
assert.eq(1, coll.find({_id: 200}).itcount());

// Before the section begins everything goes on as ever.
whileHung(donor, "moveChunkHangAtStep4", (point) => {
    move = inBackground(db, {moveRange: coll.getFullName(), min: {x: -4}, max: {x: -3}, toShard: second});
    point.wait();
    assert.commandWorked(coll.insert({_id: 300, x: -3.5}));
    assert.commandWorked(coll.update({x: -4}, {$set: {v: 4}}));
    assert.eq(1, coll.find({x: -3.5}).itcount());
});
assert.commandWorked(move.returnData());
assert.eq(4, coll.findOne({x: -4}).v);
assert.eq(1, coll.find({_id: 300}).itcount());
assert.soon(() => heldBy(coll, second) >= 10);
dropWithRemains(testDB);
