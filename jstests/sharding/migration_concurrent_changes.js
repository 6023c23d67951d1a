/**
 * What is written while a range is being copied must arrive as well: inserts, updates, deletes, and keys that come and go.
 * It fails if a change between copying and commit is lost, or a deleted document comes back on the recipient.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, heldBy, inBackground, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_concurrent_changes", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
function fill(from, to) {
    for (let x = from; x < to; x++) {
        assert.commandWorked(coll.insert({_id: x, x: x, v: 0}));
    }
}
fill(-10, 100);
const recipient = shardConnection(db, second);

// One step after the other of the recipient: before the collection is there, before copying, after it, caught up.
let next = 0;
for (const step of [1, 2, 3, 4, 5]) {
    const [low, high] = [next, next + 10];
    next = high;
    const command = {moveRange: ns, min: {x: low}, max: {x: high}, toShard: second, waitForDelete: true};
    let move;
    whileHung(recipient, `migrateThreadHangAtStep${step}`, (point) => {
        move = inBackground(db, command);
        point.wait();
        assert.commandWorked(coll.insert({_id: `new${step}`, x: low + 0.5, v: 1}));
        assert.commandWorked(coll.update({x: low}, {$set: {v: 2}}));
        assert.commandWorked(coll.update({x: low + 1}, {x: low + 1, replaced: step}));
        assert.commandWorked(coll.remove({x: low + 2}));
        assert.commandWorked(coll.remove({x: low + 3}));
        assert.commandWorked(coll.insert({_id: low + 3, x: low + 3, v: 3}));
        assert.commandWorked(coll.insert({_id: `gone${step}`, x: low + 4.5}));
        assert.commandWorked(coll.remove({_id: `gone${step}`, x: low + 4.5}));
        assert.commandWorked(coll.update({x: {$gte: low + 5, $lt: high}}, {$inc: {many: 1}}, {multi: true}));
        // Beside the range nothing of it concerns the recipient.
        assert.commandWorked(coll.update({x: -5}, {$inc: {outside: 1}}));
    });
    assert.commandWorked(move.returnData());

    const direct = recipient.getDB(testDB.getName()).c;
    assert.eq(10, direct.find({x: {$gte: low, $lt: high}}).itcount(), `step ${step}`);
    assert.eq(10, coll.find({x: {$gte: low, $lt: high}}).itcount(), `step ${step}`);
    assert.eq(1, coll.findOne({_id: `new${step}`}).v);
    assert.eq(2, coll.findOne({x: low}).v);
    assert.docEq({_id: low + 1, x: low + 1, replaced: step}, coll.findOne({x: low + 1}));
    assert.eq(null, coll.findOne({x: low + 2}));
    assert.eq(3, coll.findOne({x: low + 3}).v);
    assert.eq(5, coll.find({x: {$gte: low, $lt: high}, many: 1}).itcount());
    assert.eq(0, direct.find({x: {$lt: 0}}).itcount());
}
assert.eq(5, coll.findOne({x: -5}).outside);
assert.eq(110, coll.find().itcount());
assert.eq(50, heldBy(coll, second));

// Without fail points: a writer that never pauses, while ranges go to and fro.
const stop = new CountDownLatch(1);
const writer = new Thread(function(host, name, stop) {
    const c = new Mongo(host).getDB(name).c;
    let written = 0;
    while (stop.getCount() > 0) {
        const reply = c.update({x: 50 + written % 20}, {$inc: {count: 1}});
        if (reply.hasWriteError() || reply.nModified !== 1) {
            throw new Error(tojson(reply));
        }
        written++;
    }
    return written;
}, db.getMongo().host, testDB.getName(), stop);
writer.start();
assert.soon(() => coll.find({count: {$exists: true}}).itcount() > 0);
try {
    for (let i = 0; i < 4; i++) {
        assert.commandWorked(db.adminCommand({
            moveRange: ns, min: {x: 50}, max: {x: 70}, toShard: i % 2 === 0 ? second : first, waitForDelete: true,
        }));
    }
} finally {
    stop.countDown();
}
const written = writer.returnData();
const counted = coll.aggregate([{$group: {_id: null, n: {$sum: "$count"}}}]).toArray()[0].n;
assert.gt(written, 0);
assert.eq(written, counted);
assert.commandWorked(testDB.dropDatabase());
