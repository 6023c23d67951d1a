/**
 * When the commit of a migration fails or its answer is lost, the donor must find out what was decided and follow it.
 * It fails if the donor takes a lost answer for a refusal, or a refused commit leaves the recipient an owner.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    configConnection,
    freshCollection,
    hastenRangeDeletion,
    heldBy,
    inBackground,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const restore = hastenRangeDeletion(db);
const coll = freshCollection(db, "migration_commit_failures", {x: 1}, [{x: 0}, {x: 10}], [first, first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 20; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x}));
}
const donor = shardConnection(db, first);
const owners = () => chunksOf(coll).map((c) => c.shard);
const move = (min, max) => db.adminCommand({moveRange: ns, min: {x: min}, max: {x: max}, toShard: second, waitForDelete: true});
function settled(held) {
    for (const name of [first, second]) {
        const local = shardConnection(db, name).getDB("config");
        assert.soon(() => local.migrationCoordinators.find({nss: ns}).itcount() === 0);
        assert.soon(() => local.rangeDeletions.find({nss: ns}).itcount() === 0);
    }
    assert.soon(() => tojson(held) === tojson([heldBy(coll, first), heldBy(coll, second)]));
    assert.eq(30, coll.find().itcount());
    assert.eq(30, assert.commandWorked(coll.updateMany({}, {$inc: {round: 1}})).modifiedCount);
}

// The donor does not get as far as asking.
let point = configureFailPoint(donor, "failMigrationCommit", {}, {times: 1});
assert.commandFailed(move(0, 10));
point.off();
assert.eq([first, first, first], owners());
settled([30, 0]);

// The config server refuses.
point = configureFailPoint(configConnection(db), "migrationCommitVersionError", {}, {times: 1});
assert.commandFailedWithCode(move(0, 10), 150);
point.off();
assert.eq([first, first, first], owners());
settled([30, 0]);

// It commits, but its answer is lost: the migration is done.
point = configureFailPoint(donor, "migrationCommitNetworkError", {}, {times: 1});
const lost = move(0, 10);
point.off();
assert.eq([first, second, first], owners());
assert(lost.ok === 1 || [6, 7, 89, 96].includes(lost.code), tojson(lost));
settled([20, 10]);

// The recipient is not told: it finds out when it is asked.
point = configureFailPoint(donor, "doNotRefreshRecipientAfterCommit");
assert.commandWorked(move(10, MaxKey));
assert.eq([first, second, second], owners());
assert.eq(1, coll.find({x: 15}).itcount());
assert.commandWorked(coll.update({x: 15}, {$set: {found: true}}));
point.off();
settled([10, 20]);

// Between commit and clean-up reads and writes already go to the new owner.
whileHung(donor, "hangBeforeForgettingMigrationAfterCommitDecision", (point) => {
    const moving = inBackground(db, {moveRange: ns, min: {x: MinKey}, max: {x: 0}, toShard: second});
    point.wait();
    assert.eq([second, second, second], owners());
    assert.eq("committed", donor.getDB("config").migrationCoordinators.findOne({nss: ns}).decision);
    assert.eq(1, coll.find({x: -5}).itcount());
    assert.commandWorked(coll.update({x: -5}, {$set: {late: true}}));
    point.off();
    assert.commandWorked(moving.returnData());
});
settled([0, 30]);
assert.eq(1, coll.find({late: true}).itcount());
restore();
assert.commandWorked(testDB.dropDatabase());
