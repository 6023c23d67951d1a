/**
 * An index build through a router that waits for a commit quorum ends when its client wants it no more, and when what it builds is
 * dropped; the shards have the index on none then, and the collection can be changed.
 * It fails if killOp or maxTimeMS leave the build waiting on a shard, if a drop waits for the quorum, or if one that is refused ends builds.
 *
 * @tags: [requires_own_servers]
 */
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";
import {hold, letGo} from "jstests/replsets/libs/members.js";

const st = new ShardingTest({shards: {rs0: {nodes: 1}, rs1: {nodes: 3}}, mongos: 1});
const admin = st.s.getDB("admin");
const testDB = st.s.getDB("test");
const ns = "test.c";
assert.commandWorked(st.s.adminCommand({balancerStop: 1}));
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: st.shard1.shardName}));
assert.commandWorked(testDB.c.insert([{x: -1}, {x: 1}]));
st.rs1.awaitReplication();

const held = st.rs1.getSecondaries()[0];
const point = hold(held);
assert.commandWorked(testDB.c.insert({x: 2}));
point.wait();

const shards = [st.shard0, st.rs1.getPrimary()];
const create = (name, more) =>
    Object.assign({createIndexes: "c", indexes: [{key: {[name]: 1}, name: name}], commitQuorum: "votingMembers"}, more);
/** The build waits on the second shard for the member that is behind. */
const waits = (name) => assert.soon(() =>
    shards[1].getDB("test").runCommand({setIndexCommitQuorum: "c", indexNames: [name], commitQuorum: 4}).code === 278);
const isNowhere = (name) => assert.soon(() => {
    const has = shards.some((s) => s.getDB("test").c.getIndexes().some((i) => i.name === name));
    const underWay = st.shard0.getDB("config").system.sharding_ddl_coordinators.countDocuments({});
    return !has && underWay === 0 && !("allowMigrations" in st.s.getDB("config").collections.findOne({_id: ns}));
});
function begin(name) {
    const join = startParallelShell(funWithArgs((command, codes) => {
        const reply = db.getSiblingDB("test").runCommand(command);
        assert(codes.includes(reply.code), tojson(reply));
    }, create(name), [11601, 276]), st.s.port);
    waits(name);
    return join;
}

let join = begin("killed");
const op = admin.aggregate([{$currentOp: {localOps: true}}, {$match: {"command.createIndexes": "c"}}]).toArray()[0];
assert.commandWorked(st.s.adminCommand({killOp: 1, op: op.opid}));
join();
isNowhere("killed");

assert.commandFailedWithCode(testDB.runCommand(create("late", {maxTimeMS: 3000})), ErrorCodes.MaxTimeMSExpired);
isNowhere("late");

join = begin("unwanted");
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: ["unwanted", "none"]}), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(testDB.runCommand({dropIndexes: "c", index: ["unwanted", "x_1"]}), 370);
waits("unwanted");
assert.commandWorked(testDB.runCommand({dropIndexes: "c", index: "unwanted"}));
join();
isNowhere("unwanted");

// What needs no quorum is built beside it afterwards.
assert.commandWorked(testDB.runCommand({createIndexes: "c", indexes: [{key: {y: 1}, name: "y"}]}));
join = begin("dropped");
assert.commandWorked(testDB.runCommand({drop: "c"}));
join();
assert.eq(0, st.s.getDB("config").collections.countDocuments({_id: ns}));
letGo(held);
st.stop();
