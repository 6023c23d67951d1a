/**
 * After movePrimary the next primary of the old shard knows that the database has gone: whoever still sends writes there is
 * refused, also when the old one has gone between the commit and the end of its critical section.
 * It fails if a write lands on the shard that no longer has the database.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2, mongos: 2, config: 1, rs: {nodes: 2, settings: {electionTimeoutMillis: 2000}}});

/** A database on the first shard that both routers know; `move` takes it to the second, and the second router learns nothing of it. */
function moved(name, move) {
    const [one, two] = [st.s0.getDB(name), st.s1.getDB(name)];
    assert.commandWorked(st.s0.adminCommand({enableSharding: name, primaryShard: st.shard0.shardName}));
    assert.commandWorked(one.c.insert({_id: 1}, {writeConcern: {w: 2}}));
    assert.eq(1, two.c.find().itcount());
    move({movePrimary: name, to: st.shard1.shardName});
    assert.commandWorked(two.c.insert({_id: 2}));
    assert.commandWorked(two.d.insert({_id: 1}));
    for (const db of [one, two]) {
        assert.eq([{_id: 1}, {_id: 2}], db.c.find().sort({_id: 1}).toArray());
        assert.eq(1, db.d.find().itcount());
    }
    const old = st.rs0.getPrimary().getDB(name);
    assert.eq(0, old.c.find({_id: 2}).itcount() + old.d.find().itcount());
    assert.eq(2, st.rs1.getPrimary().getDB(name).c.find().itcount());
}

moved("test", (command) => {
    assert.commandWorked(st.s0.adminCommand(command));
    st.rs0.stepUp(st.rs0.getSecondary());
});
for (const phase of ["clean", "exitCriticalSection"]) {
    moved("until_" + phase, (command) => {
        const point = configureFailPoint(st.rs0.getPrimary(), "hangDdlCoordinatorBeforeRunning_" + phase);
        const moving = inBackground(st.s0.getDB("admin"), command);
        point.wait();
        st.rs0.stepUp(st.rs0.getSecondary());
        point.off();
        // The next primary brings it to an end, and the client hears of nothing else.
        assert.commandWorked(moving.returnData());
        assert.eq(st.shard1.shardName, st.s0.getDB("config").databases.findOne({_id: command.movePrimary}).primary);
    });
}
st.stop();
