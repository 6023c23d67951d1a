/**
 * A read of level snapshot outside transactions sees all shards as of one cluster time: given, or chosen and told. It fails if
 * shards choose times of their own, if a cursor leaves its time, or if a range that has moved since is looked for where it is.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshCollection, moveRange, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "snapshot_reads_at_one_time", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
const snapshot = (at) => at ? {level: "snapshot", atClusterTime: at} : {level: "snapshot"};
function find(at, more) {
    const command = Object.assign({find: "c", sort: {_id: 1}, readConcern: snapshot(at)}, more || {});
    return assert.commandWorked(testDB.runCommand(command)).cursor;
}

assert.commandWorked(coll.insert([{_id: 1, x: -1, v: 0}, {_id: 2, x: 1, v: 0}, {_id: 3, x: 2, v: 0}]));
const then = find();
assert(then.atClusterTime instanceof Timestamp, tojson(then));
assert.eq([0, 0, 0], then.firstBatch.map((d) => d.v));

// What is written, removed and moved afterwards is not seen at that time, by any command, on any way through it.
assert.commandWorked(coll.updateMany({}, {$set: {v: 1}}));
assert.commandWorked(coll.deleteOne({_id: 3}));
function check() {
    assert.eq([0, 0, 0], find(then.atClusterTime).firstBatch.map((d) => d.v));
    assert.eq([0], find(then.atClusterTime, {filter: {x: -1}}).firstBatch.map((d) => d.v));
    assert.eq([0], find(then.atClusterTime, {filter: {x: 2}}).firstBatch.map((d) => d.v));
    const grouped = assert.commandWorked(testDB.runCommand({
        aggregate: "c", pipeline: [{$group: {_id: "$v", n: {$sum: 1}}}], cursor: {},
        readConcern: snapshot(then.atClusterTime),
    })).cursor;
    assert.eq([[{_id: 0, n: 3}], then.atClusterTime], [grouped.firstBatch, grouped.atClusterTime]);
    const joined = assert.commandWorked(testDB.runCommand({
        aggregate: "c", cursor: {}, readConcern: snapshot(then.atClusterTime), pipeline: [
            {$lookup: {from: "c", localField: "v", foreignField: "v", as: "same"}}, {$project: {n: {$size: "$same"}}},
        ],
    })).cursor;
    assert.eq([3, 3, 3], joined.firstBatch.map((d) => d.n));
    const distinct = assert.commandWorked(testDB.runCommand(
        {distinct: "c", key: "x", readConcern: snapshot(then.atClusterTime)}));
    assert.eq([[-1, 1, 2], then.atClusterTime], [distinct.values.sort((a, b) => a - b), distinct.atClusterTime]);
    assert.eq([1, 1], find().firstBatch.map((d) => d.v));
}
check();
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, first);
check();
moveRange(coll, {min: {x: MinKey}, max: {x: 0}}, second);
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);
check();

// A cursor stays at its time.
const open = find(undefined, {batchSize: 1});
assert.commandWorked(coll.updateMany({}, {$set: {v: 2}}));
const rest = assert.commandWorked(testDB.runCommand({getMore: open.id, collection: "c"})).cursor.nextBatch;
assert.eq([1, 1], open.firstBatch.concat(rest).map((d) => d.v));

// A time that nobody has any more, and one that nobody can have seen.
const old = {find: "c", readConcern: snapshot(Timestamp(1, 1))};
assert.commandFailedWithCode(testDB.runCommand(old), [239, 246, 250]);
const late = {find: "c", readConcern: snapshot(Timestamp(4000000000, 1))};
assert.commandFailedWithCode(testDB.runCommand(late), 72);

// A range changes hands after the last write on the shard that gives it away, though that shard's clock is ahead.
const donor = shardConnection(db, second);
const ahead = Timestamp(Math.floor(Date.now() / 1000) + 3, 1);
assert.commandWorked(donor.adminCommand({
    ping: 1, $clusterTime: {clusterTime: ahead, signature: {hash: BinData(0, "A".repeat(27) + "="), keyId: NumberLong(0)}},
}));
assert.commandWorked(coll.insert({_id: 9, x: 9}));
const written = donor.getDB("local").oplog.rs.find({op: "i", "o._id": 9}).sort({$natural: -1}).next().ts;
assert.gt(timestampCmp(written, ahead), 0, tojson([written, ahead]));
moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, first);
const moved = chunksOf(coll).find((chunk) => chunk.min.x === 0);
assert.gt(timestampCmp(moved.history[0].validAfter, written), 0, tojson([moved, written]));
// So does what is written there afterwards come after it.
assert.commandWorked(coll.insert({_id: 10, x: 10}));
assert.eq(1, find(undefined, {filter: {x: 10}}).firstBatch.length);
const oplog = shardConnection(db, first).getDB("local").oplog.rs;
const later = oplog.find({op: "i", "o._id": 10}).sort({$natural: -1}).next().ts;
assert.gt(timestampCmp(later, moved.history[0].validAfter), 0, tojson([later, moved]));
assert.commandWorked(testDB.dropDatabase());
