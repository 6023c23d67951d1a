/**
 * A router's write waits on each shard for members of so many values of a tag, a transaction over shards, too. It fails if one is
 * acknowledged without them, or refused though they are there.
 *
 * @tags: [requires_own_servers]
 */
import {hold, letGo, reconfig} from "jstests/replsets/libs/members.js";

const st = new ShardingTest({shards: 2, rs: {nodes: 2}});
for (const [rst, centres] of [[st.rs0, ["east", "west"]], [st.rs1, ["east", "east"]]]) {
    assert.commandWorked(reconfig(rst, (config) => config.members.forEach((m, i) => m.tags = {dc: centres[i]})));
}
const test = st.s.getDB("test");
assert.commandWorked(st.s.adminCommand({enableSharding: "test", primaryShard: st.shard0.shardName}));
assert.commandWorked(st.s.adminCommand({shardCollection: "test.c", key: {_id: 1}}));
assert.commandWorked(st.s.adminCommand({split: "test.c", middle: {_id: 0}}));
assert.commandWorked(st.s.adminCommand({moveChunk: "test.c", find: {_id: 0}, to: st.shard1.shardName}));

const insert = (ids, w) => test.runCommand({
    insert: "c", documents: ids.map((id) => ({_id: id})), ordered: false, writeConcern: {w: w, wtimeout: 1000},
});
assert.commandWorked(insert([-1], {dc: 2}));
assert.commandWorked(insert([-2, 2], {dc: 1}));
assert.eq(100, insert([1], {dc: 2}).writeConcernError.code);
assert.eq(100, insert([-3, 3], {dc: 2}).writeConcernError.code);
assert.eq(4, insert([-4], {rack: 1}).writeConcernError.code);
const west = st.rs0.getSecondary();
hold(west);
assert.eq(64, insert([-5], {dc: 2}).writeConcernError.code);
letGo(west);
assert.eq(8, test.c.find().itcount());

const session = st.s.startSession();
const commit = (ids, w) => {
    session.startTransaction({writeConcern: {w: w, wtimeout: 20000}});
    ids.forEach((id) => assert.commandWorked(session.getDatabase("test").c.insert({_id: id})));
    return session.commitTransaction_forTesting();
};
assert.commandWorked(commit([-6, 6], {dc: 1}));
assert.commandWorked(commit([-7], {dc: 2}));
assert.eq(100, commit([7], {dc: 2}).writeConcernError.code);
session.endSession();
assert.eq(12, test.c.find().itcount());
st.stop();
