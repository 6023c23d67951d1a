/**
 * Tests hold changes of the catalog at the real server's fail points: those of a resharding and of a refinement on the config server, those
 * of movePrimary on the database's shard. It fails if the change goes on while it is held, or does not end once it is let go.
 *
 * @tags: [requires_own_servers]
 */
import {ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, config, testDB} = ownCluster("fail_points_of_ddl");
const coll = testDB.c;
const ns = coll.getFullName();
const configServer = st.configRS.getPrimary();
assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(coll.insert([...Array(20).keys()].map((i) => ({_id: i, x: i, y: 20 - i}))));
assert.commandWorked(coll.createIndex({x: 1, y: 1}));
const key = () => config.collections.findOne({_id: ns}).key;

function inBackground(command, code = 0) {
    const text = `const reply = db.adminCommand(${tojson(command)}); assert.eq(${code}, reply.code || 0, tojson(reply));`;
    return startParallelShell(text, st.s.port);
}

for (const point of ["hangRefineCollectionShardKeyBeforeUpdatingChunks", "hangRefineCollectionShardKeyBeforeCommit"]) {
    const held = configureFailPoint(configServer, point);
    const refine = inBackground({refineCollectionShardKey: ns, key: {x: 1, y: 1}}, 0);
    held.wait();
    assert.eq({x: 1}, key(), point);
    held.off();
    refine();
    assert.eq({x: 1, y: 1}, key());
    assert.commandWorked(st.s.adminCommand({reshardCollection: ns, key: {x: 1}, numInitialChunks: 1}));
    assert.eq({x: 1}, key());
}

// A resharding, through all places in one go.
const states = {
    reshardingPauseCoordinatorBeforeInitializing: undefined,
    reshardingPauseCoordinatorBeforeCloning: "preparing-to-donate",
    reshardingPauseCoordinatorBeforeBlockingWrites: "applying",
    reshardingPauseCoordinatorBeforeDecisionPersisted: "blocking-writes",
};
const operation = () => config.reshardingOperations.findOne({ns: ns});
const held = Object.keys(states).map((name) => configureFailPoint(configServer, name, {sourceNamespace: ns}));
const other = configureFailPoint(configServer, "reshardingPauseCoordinatorBeforeRemovingStateDoc", {sourceNamespace: ns + "2"});
const end = configureFailPoint(configServer, "reshardingPauseCoordinatorBeforeCompletion");
const recipient = configureFailPoint(st.shard0, "reshardingPauseRecipientBeforeCloning");
const reshard = inBackground({reshardCollection: ns, key: {y: 1}, numInitialChunks: 1});
for (const [i, [point, state]] of Object.entries(states).entries()) {
    held[i].wait();
    assert.eq({x: 1}, key(), point);
    assert.eq(state === undefined, operation() === null, point);
    if (state !== "blocking-writes") {
        // The decision is made while reads wait, too.
        assert.eq(20, coll.find().itcount(), point);
    }
    if (i === 2) {
        assert.eq(state, operation().state);
        assert.commandWorked(coll.insert({_id: 20, x: 20, y: 0}));
        assert.commandWorked(coll.remove({_id: 0}));
    }
    held[i].off();
    if (i === 1) {
        recipient.wait();
        assert.eq("cloning", operation().state);
        recipient.off();
    }
}
end.wait();
assert.eq({y: 1}, key());
end.off();
reshard();
other.off();
assert.eq(null, operation());
assert.eq([...Array(20).keys()].map((i) => i + 1), coll.find().sort({_id: 1}).toArray().map((d) => d._id));

// One that is aborted while it is held.
const before = configureFailPoint(configServer, "reshardingPauseCoordinatorBeforeBlockingWrites");
const aborted = inBackground({reshardCollection: ns, key: {x: 1}, numInitialChunks: 1}, ErrorCodes.ReshardCollectionAborted);
before.wait();
assert.commandWorked(st.s.adminCommand({abortReshardCollection: ns}));
before.off();
aborted();
assert.eq({y: 1}, key());

// movePrimary.
assert.commandWorked(testDB.unsharded.insert({_id: 1}));
for (const [point, to] of [["hangBeforeCloningData", second], ["hangBeforeMovePrimaryCriticalSection", first]]) {
    const from = config.databases.findOne({_id: testDB.getName()}).primary;
    const shard = from === first ? st.shard0 : st.shard1;
    const moving = configureFailPoint(shard, point);
    const move = inBackground({movePrimary: testDB.getName(), to: to});
    moving.wait();
    assert.eq(from, config.databases.findOne({_id: testDB.getName()}).primary, point);
    moving.off();
    move();
    assert.eq(to, config.databases.findOne({_id: testDB.getName()}).primary, point);
    assert.eq(1, testDB.unsharded.find().itcount(), point);
}
st.stop();
