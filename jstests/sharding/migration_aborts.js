/**
 * A migration that fails on the way leaves everything as it was: ownership, documents, and the chance to try again.
 * It fails if a failed migration leaves copies, a coordinator's document, a blocked range or a changed owner.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    freshCollection,
    heldBy,
    inBackground,
    shardByRanges,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "migration_aborts", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = shardConnection(db, first);
const recipient = shardConnection(db, second);
const command = {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: second};

function untouched() {
    assert.eq([first, first], chunksOf(coll).map((c) => c.shard));
    assert.soon(() => donor.getDB("config").migrationCoordinators.find({nss: ns}).itcount() === 0);
    assert.soon(() => donor.getDB("config").rangeDeletions.find({nss: ns}).itcount() === 0);
    assert.soon(() => recipient.getDB("config").rangeDeletions.find({nss: ns}).itcount() === 0);
    assert.soon(() => heldBy(coll, second) === 0, "the recipient deletes what it had copied");
    assert.eq(20, coll.find().itcount());
    assert.commandWorked(coll.update({x: 5}, {$inc: {tries: 1}}));
    assert.commandWorked(coll.insert({_id: "probe", x: 5.5}));
    assert.commandWorked(coll.remove({_id: "probe", x: 5.5}));
}

// The recipient fails.
let point = configureFailPoint(recipient, "failMigrationOnRecipient", {}, {times: 1});
assert.commandFailedWithCode(db.adminCommand(command), 96);
point.off();
untouched();

// Somebody stops the donor's operation while it copies.
let move;
whileHung(recipient, "migrateThreadHangAtStep3", (point) => {
    move = inBackground(db, command);
    point.wait();
    const session = recipient.adminCommand({_recvChunkStatus: ns, waitForSteadyOrDone: false});
    assert.commandWorked(session);
    assert(session.active, tojson(session));
    assert.eq(ns, session.ns);
    assert.eq({x: 0}, session.min);
    assert.eq({x: MaxKey}, session.max);
    assert.eq({x: 1}, session.shardKeyPattern);
    assert(session.sessionId.startsWith(`${first}_${second}_`), tojson(session));
    assert.gte(Number(session.counts.cloned), 0);
    assert.commandWorked(recipient.adminCommand({_recvChunkAbort: ns, sessionId: session.sessionId}));
});
assert.commandFailed(move.returnData());
untouched();

// The collection is dropped under the migration: it is gone in the end, with all that the migration left.
const dropped = testDB.d;
shardByRanges(dropped, {x: 1}, [{x: 0}], [first, first]);
assert.commandWorked(dropped.insert([{x: 1}, {x: 2}]));
let drop;
whileHung(recipient, "migrateThreadHangAtStep3", (point) => {
    move = inBackground(db, Object.assign({}, command, {moveRange: dropped.getFullName()}));
    point.wait();
    drop = new Thread(function(host, name) {
        return new Mongo(host).getDB(name).runCommand({drop: "d"});
    }, db.getMongo().host, testDB.getName());
    drop.start();
    sleep(500);
});
move.join();
assert.commandWorked(drop.returnData());
assert.eq(0, dropped.find().itcount());
assert.eq(null, db.getSiblingDB("config").collections.findOne({_id: dropped.getFullName()}));
for (const shard of [donor, recipient]) {
    assert.soon(() => shard.getDB("config").migrationCoordinators.find({nss: dropped.getFullName()}).itcount() === 0);
    assert.soon(() => shard.getDB("config").rangeDeletions.find({nss: dropped.getFullName()}).itcount() === 0);
}

// After all these failures the range can be moved.
assert.commandWorked(db.adminCommand(Object.assign({}, command, {waitForDelete: true})));
assert.eq([first, second], chunksOf(coll).map((c) => c.shard));
assert.eq([10, 10], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq(2, coll.findOne({x: 5}).tries);
assert.commandWorked(testDB.dropDatabase());
