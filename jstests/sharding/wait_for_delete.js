/**
 * With waitForDelete a migration answers only after the donor has deleted what it gave away; without, it does not wait.
 * It fails if the answer comes before the deletion, or a delayed deletion is done at once.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshCollection, heldBy, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "wait_for_delete", {x: 1}, [{x: 0}, {x: 10}], [first, first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 20; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = shardConnection(db, first);
const deleted = () => Number(assert.commandWorked(donor.adminCommand({serverStatus: 1}))
                                 .shardingStatistics.countDocsDeletedByRangeDeleter);
const was = assert.commandWorked(donor.adminCommand({getParameter: 1, orphanCleanupDelaySecs: 1})).orphanCleanupDelaySecs;
assert.commandWorked(donor.adminCommand({setParameter: 1, orphanCleanupDelaySecs: 600}));

// As long as the deletion is held up there is no answer, though the range has its new owner.
const before = deleted();
const answered = new CountDownLatch(1);
let move;
whileHung(donor, "hangBeforeDoingDeletion", (point) => {
    move = new Thread(function(host, command, answered) {
        const reply = new Mongo(host).getDB("admin").runCommand(command);
        answered.countDown();
        return reply;
    }, db.getMongo().host, {moveRange: ns, min: {x: 10}, max: {x: MaxKey}, toShard: second, waitForDelete: true}, answered);
    move.start();
    point.wait();
    assert.soon(() => chunksOf(coll).some((chunk) => chunk.shard === second));
    sleep(500);
    assert.eq(1, answered.getCount(), "the answer came before the deletion");
    assert.eq([30, 10], [heldBy(coll, first), heldBy(coll, second)]);
});
assert.commandWorked(move.returnData());
assert.eq([20, 10], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq(before + 10, deleted());
assert.eq(0, donor.getDB("config").rangeDeletions.find({nss: ns}).itcount());

assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: 0}, max: {x: 10}, toShard: second, waitForDelete: false}));
sleep(500);
assert.eq([20, 20], [heldBy(coll, first), heldBy(coll, second)], "deletion is delayed by ten minutes");
const task = donor.getDB("config").rangeDeletions.findOne({nss: ns});
assert.eq("delayed", task.whenToClean);
assert.eq(30, coll.find().itcount());

// Each range has a task of its own, and one is done while another still waits.
assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: MinKey}, max: {x: 0}, toShard: second, waitForDelete: true}));
assert.eq([10, 30], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq([{x: 0}], donor.getDB("config").rangeDeletions.find({nss: ns}).toArray().map((t) => t.range.min));
assert.commandWorked(donor.adminCommand({setParameter: 1, orphanCleanupDelaySecs: was}));
assert.eq(30, coll.find().itcount());
assert.commandWorked(testDB.dropDatabase());
assert.soon(() => donor.getDB("config").rangeDeletions.find({nss: ns}).itcount() === 0);
