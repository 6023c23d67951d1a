/**
 * A write that waits for members ends when its time is up or somebody ends it, and says so in the error of its concern: the write stays.
 * It fails if it goes on waiting, or if the error takes the place of the reply.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";
import {Thread} from "jstests/libs/parallelTester.js";

const rst = startedSet(3, {members: {2: {priority: 0}}});
const primary = rst.getPrimary();
const db = primary.getDB("d");
assert.commandWorked(db.c.insert({_id: 0}, {writeConcern: {w: 3}}));
rst.stop(2);

for (const [id, wtimeout] of [[1, 0], [2, 600000]]) {
    const reply = db.runCommand({insert: "c", documents: [{_id: id}], writeConcern: {w: 3, wtimeout: wtimeout}, maxTimeMS: 500});
    assert.eq([1, 1], [reply.ok, reply.n], tojson(reply));
    assert.eq(ErrorCodes.MaxTimeMSExpired, reply.writeConcernError.code, tojson(reply));
    assert.eq("MaxTimeMSExpired", reply.writeConcernError.codeName);
}

const waiting = new Thread((host) => {
    const conn = new Mongo(host);
    return conn.getDB("d").runCommand({insert: "c", documents: [{_id: 3}], writeConcern: {w: 3}, comment: "waits"});
}, primary.host);
waiting.start();
const find = () => primary.getDB("admin").aggregate([{$currentOp: {}}, {$match: {"command.comment": "waits"}}]).toArray();
assert.soon(() => find().length === 1);
assert.soon(() => db.c.find({_id: 3}).itcount() === 1);
assert.commandWorked(db.adminCommand({killOp: 1, op: find()[0].opid}));
waiting.join();
const ended = waiting.returnData();
assert.eq(ErrorCodes.Interrupted, ended.writeConcernError.code, tojson(ended));
assert.eq([0, 1, 2, 3], db.c.find().sort({_id: 1}).toArray().map((d) => d._id));

// What can be met is met in the time there is.
assert.commandWorked(db.runCommand({insert: "c", documents: [{_id: 4}], writeConcern: {w: "majority"}, maxTimeMS: 20000}));
rst.stopSet();
