/**
 * An $out whose target's database moves to another primary begins anew there, and leaves nothing of its first attempt on either shard.
 * It fails if the collection beside the target is taken along or stays, or if the result is not the target in the end.
 *
 * @tags: [requires_own_servers]
 */
import {ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin} = ownCluster("d");
assert.commandWorked(admin.runCommand({enableSharding: "other", primaryShard: first}));
const other = st.s.getDB("other");
const many = Array.from({length: 1500}, (_, i) => ({_id: i, at: new Date(i), m: 1}));
assert.commandWorked(other.plain.insert(many));
assert.commandWorked(admin.runCommand({shardCollection: "other.sharded", key: {_id: 1}}));
assert.commandWorked(other.sharded.insert(many));

const shards = {};
shards[first] = st.rs0.getPrimary();
shards[second] = st.rs1.getPrimary();
const outputs = () => Object.values(shards).flatMap(
    (shard) => shard.getDB("d").getCollectionNames().filter((name) => name.startsWith("tmp.agg_out")));
let from = first;
for (const source of ["sharded", "plain"]) {
    for (const timeseries of [undefined, {timeField: "at", metaField: "m"}]) {
        const target = `${source}_${timeseries ? "series" : "ordinary"}`;
        const out = Object.assign({db: "d", coll: target}, timeseries ? {timeseries} : {});
        const to = from === first ? second : first;
        // So that the shard knows the target, and refuses nothing as stale yet.
        assert.commandWorked(other.runCommand({aggregate: source, pipeline: [{$limit: 1}, {$out: out}], cursor: {}}));
        // The batch before it has been written, into the collection beside the target.
        const point = configureFailPoint(shards[from], "hangWhileBuildingDocumentSourceOutBatch", {}, {skip: 1});
        const running = new Thread(function(host, source, out) {
            const pipeline = [{$sort: {_id: 1}}, {$out: out}];
            return new Mongo(host).getDB("other").runCommand({aggregate: source, pipeline, cursor: {}});
        }, st.s.host, source, out);
        running.start();
        point.wait();
        assert.eq(1, outputs().length);
        assert.commandWorked(admin.runCommand({movePrimary: "d", to}));
        assert.eq([], outputs());
        point.off();
        assert.commandWorked(running.returnData());
        assert.eq([], outputs());
        assert.eq(many.map((d) => d._id), st.s.getDB("d")[target].find().sort({_id: 1}).toArray().map((d) => d._id));
        from = to;
    }
}
st.stop();
