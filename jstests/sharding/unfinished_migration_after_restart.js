/**
 * A shard killed in the middle of a migration finds out afterwards whether it was committed, and finishes either way.
 * It fails if the coordinator's document stays, a range has two owners or none, or documents are deleted on the owner.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, rs: {nodes: 1}});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const config = st.s.getDB("config");
let n = 0;

function kill(rs, restart) {
    rs.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    if (restart) {
        rs.start(0, {}, true);
        rs.awaitNodesAgreeOnPrimary();
    }
}

/** Moves a range of a new collection until the fail point holds it up, kills the set, and checks what comes of it. */
function interrupted(rs, failPoint, expected) {
    const name = `c${n++}`;
    const ns = `u.${name}`;
    jsTestLog(`${failPoint} on ${rs.name}: expecting the range to be on ${expected}`);
    assert.commandWorked(st.s.adminCommand({enableSharding: "u", primaryShard: first}));
    assert.commandWorked(st.s.adminCommand({shardCollection: ns, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: ns, middle: {x: 0}}));
    const coll = st.s.getCollection(ns);
    for (let x = -20; x < 20; x++) {
        assert.commandWorked(coll.insert({_id: x, x: x}, {writeConcern: {w: "majority"}}));
    }
    const point = configureFailPoint(rs.getPrimary(), failPoint);
    const move = new Thread(function(host, ns, to) {
        try {
            return new Mongo(host).adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: to});
        } catch (e) {
            return {ok: 0, errmsg: e.toString()};
        }
    }, st.s.host, ns, second);
    move.start();
    point.wait();
    kill(rs, true);
    move.join();

    // Writes and reads of the whole key range work again, and nothing was lost or doubled.
    const uuid = config.collections.findOne({_id: ns}).uuid;
    assert.soonNoExcept(() => coll.update({x: 5}, {$set: {after: true}}).nMatched === 1, "writes do not come back");
    assert.soonNoExcept(() => coll.find().itcount() === 40, () => tojson(coll.find().toArray()));
    const owner = config.chunks.findOne({uuid: uuid, min: {x: 0}}).shard;
    if (expected) {
        assert.eq(expected, owner, failPoint);
    }
    const owning = (owner === first ? st.rs0 : st.rs1).getPrimary();
    assert.eq(20, owning.getCollection(ns).find({x: {$gte: 0}}).itcount());

    // What the migration wrote down is gone in the end.
    for (const set of [st.rs0, st.rs1]) {
        assert.soonNoExcept(() => {
            const node = set.getPrimary().getDB("config");
            return node.migrationCoordinators.find({nss: ns}).itcount() === 0 &&
                node.rangeDeletions.find({nss: ns, pending: true}).itcount() === 0;
        }, () => tojson(set.getPrimary().getDB("config").migrationCoordinators.find().toArray()));
    }
    // And the range can be moved, by the new owner.
    const to = owner === first ? second : first;
    assert.soonNoExcept(() => st.s.adminCommand(
        {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: to, waitForDelete: true}).ok === 1, "no move is possible");
    assert.eq(40, coll.find().itcount());
}

interrupted(st.rs0, "moveChunkHangAtStep3", first);
interrupted(st.rs0, "moveChunkHangAtStep4", first);
interrupted(st.rs0, "moveChunkHangAtStep5", null);
interrupted(st.rs0, "hangBeforeMakingCommitDecisionDurable", second);
interrupted(st.rs1, "migrateThreadHangAtStep3", first);
interrupted(st.rs1, "migrateThreadHangAtStep5", first);
st.stop();
