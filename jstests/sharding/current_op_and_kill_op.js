/**
 * Operations of all shards are listed by the router under their shard's name, and can be stopped by that name.
 * It fails if an operation is not listed, its opid does not say where it runs, or killOp stops nothing.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "current_op_and_kill_op", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
const shard = shardConnection(db, second);

whileHung(shard, "waitInFindBeforeMakingBatch", (point) => {
    const reader = new Thread(function(host, name) {
        return new Mongo(host).getDB(name).runCommand({find: "c", filter: {x: 1}, comment: "to be stopped"});
    }, db.getMongo().host, testDB.getName());
    reader.start();
    let found;
    assert.soon(() => {
        found = db.getSiblingDB("admin").aggregate([
            {$currentOp: {allUsers: true}}, {$match: {"command.comment": "to be stopped", shard: second}},
        ]).toArray();
        return found.length === 1;
    }, () => tojson(found));
    const [op] = found;
    assert(op.opid.startsWith(`${second}:`), tojson(op));
    assert.eq(second, op.shard);
    assert.eq(coll.getFullName(), op.ns);
    assert.eq(true, op.active);
    assert.contains(op.op, ["query", "command"]);
    assert.eq({x: 1}, op.command.filter);
    assert.gte(op.secs_running, 0);

    assert.commandWorked(db.adminCommand({killOp: 1, op: op.opid}));
    assert.commandFailedWithCode(reader.returnData(), 11601);
});
assert.eq(1, coll.find({x: 1}).itcount());

// The router's own operations, and forms of the helper.
const local = db.getSiblingDB("admin").aggregate([{$currentOp: {localOps: true}}, {$limit: 5}]).toArray();
assert(local.every((op) => !("shard" in op)), tojson(local));
assert.gt(db.currentOp(true).inprog.length, 0);
assert.commandFailed(db.adminCommand({killOp: 1}));
assert.commandFailed(db.adminCommand({killOp: 1, op: "no such shard:5"}));
assert.commandFailedWithCode(testDB.runCommand({killOp: 1, op: 5}), 13);
assert.commandWorked(testDB.dropDatabase());
