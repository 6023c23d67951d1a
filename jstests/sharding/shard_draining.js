/**
 * The removal of a shard in steps: startShardDraining, shardDrainingStatus, stopShardDraining, commitShardRemoval.
 * It fails if a shard that still has something can be removed, a shard that is no longer draining is emptied, what is left is told
 * wrong, or a step that comes too early is taken.
 *
 * @tags: [requires_own_servers]
 */
import {afterRounds, chunksOf, ownCluster, quickRounds, shardByRanges} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("d");
const run = (command, shard) => admin.runCommand({[command]: shard || second});
shardByRanges(testDB.c, {_id: 1}, [{_id: 0}, {_id: 10}], [first, second, second]);
assert.commandWorked(testDB.c.insert([{_id: -1}, {_id: 1}, {_id: 11}]));
assert.commandWorked(admin.runCommand({enableSharding: "other", primaryShard: second}));
assert.commandWorked(st.s.getDB("other").plain.insert({_id: 1}));

// Too early, and for a shard that is not there.
for (const command of ["shardDrainingStatus", "commitShardRemoval"]) {
    assert.commandFailedWithCode(run(command), ErrorCodes.IllegalOperation, command);
}
for (const command of ["startShardDraining", "shardDrainingStatus", "stopShardDraining", "commitShardRemoval"]) {
    assert.commandFailedWithCode(run(command, "nope"), ErrorCodes.ShardNotFound, command);
    assert.commandFailedWithCode(admin.runCommand({[command]: ""}), ErrorCodes.ShardNotFound, command);
    assert.commandFailedWithCode(admin.runCommand({[command]: 1}), ErrorCodes.TypeMismatch, command);
    assert.commandFailedWithCode(admin.runCommand({[command]: second, unknownField: 1}), 40415, command);
    assert.commandFailedWithCode(testDB.runCommand({[command]: second}), ErrorCodes.Unauthorized, command);
}
assert.commandWorked(run("stopShardDraining"), "there is nothing to stop");

// Started, twice; the other shard is then the last.
assert.commandWorked(run("startShardDraining"));
assert.commandWorked(run("startShardDraining"));
assert.eq(true, config.shards.findOne({_id: second}).draining);
assert.commandFailedWithCode(run("startShardDraining", first), ErrorCodes.IllegalOperation);
// Nothing new is placed there, not even where it is asked for; what is there already stays a while.
assert.commandFailedWithCode(admin.runCommand({enableSharding: "new", primaryShard: second}), ErrorCodes.ShardNotFound);
assert.eq(null, config.databases.findOne({_id: "new"}));
assert.commandWorked(admin.runCommand({enableSharding: "other", primaryShard: second}));
for (const node of [st.s, st.configRS.getPrimary()]) {
    const list = (filter) => node.adminCommand({listShards: 1, filter: filter});
    const names = (filter) => assert.commandWorked(list(filter)).shards.map((shard) => shard._id).sort();
    assert.eq([[second], [first], [first, second].sort()], [names({draining: true}), names({draining: false}), names({})]);
    for (const bad of [1, "draining", {draining: 1}, {draining: "true"}]) {
        assert.commandFailedWithCode(list(bad), ErrorCodes.TypeMismatch, tojson(bad));
    }
    assert.commandFailedWithCode(list({_id: first}), 40415);
}
let status = assert.commandWorked(run("shardDrainingStatus"));
assert.eq("ongoing", status.state);
assert.docEq({chunks: NumberLong(2), dbs: NumberLong(1), jumboChunks: NumberLong(0)},
             {chunks: status.remaining.chunks, dbs: status.remaining.dbs, jumboChunks: status.remaining.jumboChunks});
assert.eq(["other"], status.dbsToMove);
const refused = assert.commandFailedWithCode(run("commitShardRemoval"), 1003141);
assert.eq(2, refused.remaining.chunks, tojson(refused));

// Stopped: the balancer leaves the shard alone.
assert.commandWorked(run("stopShardDraining"));
assert(!("draining" in config.shards.findOne({_id: second})));
const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({balancerStart: 1}));
afterRounds(admin);
assert.eq([first, second, second], chunksOf(testDB.c).map((c) => c.shard));

// Started again: the chunks go; the database is the user's to move.
assert.commandWorked(run("startShardDraining"));
assert.soon(() => assert.commandWorked(run("shardDrainingStatus")).remaining.chunks == 0,
            () => tojson(run("shardDrainingStatus")), 60 * 1000);
status = assert.commandWorked(run("shardDrainingStatus"));
assert.eq(["ongoing", ["other"]], [status.state, status.dbsToMove]);
assert.commandFailedWithCode(run("commitShardRemoval"), 1003141);
assert.commandWorked(admin.runCommand({movePrimary: "other", to: first}));
assert.eq("drainingComplete", assert.commandWorked(run("shardDrainingStatus")).state);
assert.commandWorked(run("commitShardRemoval"));
assert.eq([first], config.shards.find().toArray().map((s) => s._id));
assert.commandFailedWithCode(run("shardDrainingStatus"), ErrorCodes.ShardNotFound);
assert.eq(3, testDB.c.find().itcount());
assert.eq(1, st.s.getDB("other").plain.find().itcount());
point.off();
st.stop();
