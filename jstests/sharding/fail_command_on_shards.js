/**
 * A shard's errors reach the client as they are, except those a router must handle itself by asking again.
 * It fails if the router swallows a shard's error, retries what it must not, or passes a stale version to the client.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "fail_command_on_shards", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
const shard = shardConnection(db, second);

function failing(data, mode, act) {
    const point = configureFailPoint(shard, "failCommand",
                                     Object.assign({failInternalCommands: true, namespace: coll.getFullName()}, data), mode);
    try {
        act();
    } finally {
        point.off();
    }
}

// Passed on.
failing({failCommands: ["find"], errorCode: 8}, {times: 1}, () => {
    const reply = testDB.runCommand({find: "c"});
    assert.commandFailedWithCode(reply, 8);
    assert.eq("UnknownError", reply.codeName);
});
failing({failCommands: ["aggregate"], errorCode: 50}, {times: 1},
        () => assert.commandFailedWithCode(testDB.runCommand({aggregate: "c", pipeline: [], cursor: {}}), 50));
failing({failCommands: ["insert"], errorCode: 13}, {times: 1}, () => {
    const reply = testDB.runCommand({insert: "c", documents: [{_id: 3, x: -3}, {_id: 4, x: 4}, {_id: 5, x: 5}], ordered: false});
    const codes = (reply.writeErrors || []).map((e) => [e.index, e.code]);
    assert.eq([[1, 13], [2, 13]], codes, tojson(reply));
    assert.eq(1, reply.n);
});

// Only the one that is asked.
failing({failCommands: ["find"], errorCode: 8}, "alwaysOn", () => assert.eq(1, coll.find({x: -1}).itcount()));

// Handled by the router: the client never sees them.
for (const code of [13388, 150]) {
    failing({failCommands: ["find"], errorCode: code, errorExtraInfo: {
        ns: coll.getFullName(),
        shardId: second,
        vReceived: {e: ObjectId(), t: Timestamp(1, 1), v: Timestamp(1, 0)},
        vWanted: {e: ObjectId(), t: Timestamp(2, 1), v: Timestamp(1, 0)},
    }}, {times: 2}, () => assert.eq(3, coll.find().itcount(), `code ${code}`));
}

// Network errors and a lost primary: reads are asked again.
failing({failCommands: ["find"], closeConnection: true}, {times: 1}, () => assert.eq(3, coll.find().itcount()));
failing({failCommands: ["find"], errorCode: 189}, {times: 1}, () => assert.eq(3, coll.find().itcount()));

// Writes only if they are retryable.
const session = db.getMongo().startSession({retryWrites: false});
failing({failCommands: ["update"], errorCode: 189}, {times: 1}, () => {
    const reply = testDB.runCommand({update: "c", updates: [{q: {x: 1}, u: {$inc: {n: 1}}}]});
    assert.commandFailedWithCode(reply, 189);
});
failing({failCommands: ["update"], errorCode: 189}, {times: 1}, () => {
    const reply = assert.commandWorked(testDB.runCommand({
        update: "c", updates: [{q: {x: 1}, u: {$inc: {n: 1}}}], lsid: session.getSessionId(), txnNumber: NumberLong(1),
    }));
    assert.eq(1, reply.nModified);
});
assert.eq(1, coll.findOne({x: 1}).n);
session.endSession();

// A write concern error is told, and the write is done.
const timedOut = {code: 64, errmsg: "waiting for replication timed out"};
failing({failCommands: ["update"], writeConcernError: timedOut}, {times: 1}, () => {
    const reply = testDB.runCommand({update: "c", updates: [{q: {x: 1}, u: {$inc: {n: 1}}}]});
    assert.eq(1, reply.ok);
    assert.eq(1, reply.nModified);
    assert.eq(64, reply.writeConcernError.code, tojson(reply));
});
assert.eq(2, coll.findOne({x: 1}).n);

// A time limit of the client holds for the shards as well.
failing({failCommands: ["find"], blockConnection: true, blockTimeMS: 3000}, {times: 1}, () => {
    const start = Date.now();
    assert.commandFailedWithCode(testDB.runCommand({find: "c", maxTimeMS: 300}), 50);
    assert.lt(Date.now() - start, 2500);
});
assert.commandWorked(testDB.dropDatabase());
