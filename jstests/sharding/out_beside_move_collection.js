/**
 * An $out that ends while its target is moved to another shard for the first time either replaces what has moved, or says that it did not.
 * It fails if the command succeeds and its documents are gone with the collection that was left behind.
 *
 * @tags: [requires_own_servers]
 */
import {inBackground, whileHung} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
const testDB = st.s.getDB("d");
assert.commandWorked(testDB.target.insert({_id: "old"}));
assert.commandWorked(testDB.source.insert(Array.from({length: 10}, (_, i) => ({_id: i}))));
const temporary = () => st.shard0.getDB("d").getCollectionNames().filter((name) => name.startsWith("tmp.agg_out"));

let moving, out;
whileHung(st.shard0, "hangDdlCoordinatorBeforeRunning_commit", (point) => {
    moving = inBackground(testDB, {moveCollection: "d.target", toShard: second});
    point.wait();
    out = new Thread(function(host) {
        return new Mongo(host).getDB("d").runCommand({aggregate: "source", pipeline: [{$out: "target"}], cursor: {}});
    }, st.s.host);
    out.start();
    // It has written its documents, and is about to end or has ended.
    assert.soon(() => temporary().some((name) => st.shard0.getDB("d")[name].countDocuments({}) === 10) ||
        st.shard0.getDB("d").target.countDocuments({}) === 10);
});
assert.commandWorked(moving.returnData());
const done = out.returnData();
const expected = done.ok ? Array.from({length: 10}, (_, i) => i) : ["old"];
assert.eq(expected, testDB.target.find().sort({_id: 1}).toArray().map((d) => d._id), tojson(done));
assert.eq([], temporary());
st.stop();
