/**
 * An $out whose target's database moves to another primary begins anew there, and leaves nothing of its first attempt on either shard.
 * It fails if the collection beside the target is taken along or stays, or if the result is not the target in the end; and where
 * moveCollection has placed the target, if the collection beside it does not stay until the end.
 *
 * @tags: [requires_own_servers]
 */
import {heldBy, ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config} = ownCluster("d", {shards: 3});
const third = st.shard2.shardName;
assert.commandWorked(admin.runCommand({enableSharding: "other", primaryShard: first}));
const other = st.s.getDB("other");
const many = Array.from({length: 1500}, (_, i) => ({_id: i, at: new Date(i), m: 1}));
assert.commandWorked(other.plain.insert(many));
assert.commandWorked(admin.runCommand({shardCollection: "other.sharded", key: {_id: 1}}));
assert.commandWorked(other.sharded.insert(many));

const shards = {};
shards[first] = st.rs0.getPrimary();
shards[second] = st.rs1.getPrimary();
shards[third] = st.rs2.getPrimary();
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

// The shard of the target, the primary then, and to where that moves.
const d = st.s.getDB("d");
for (const [home, before, to] of [[second, second, first], [second, first, third], [third, second, third]]) {
    assert.commandWorked(admin.runCommand({movePrimary: "d", to: before}));
    assert.commandWorked(d.placed.insert({_id: "old"}));
    for (const shard of [first, home]) {
        assert.commandWorked(admin.runCommand({moveCollection: "d.placed", toShard: shard}));
    }
    const point = configureFailPoint(shards[first], "waitAfterPinningCursorBeforeGetMoreBatch", {nss: "other.plain"});
    const running = new Thread(function(host) {
        const pipeline = [{$sort: {_id: 1}}, {$out: {db: "d", coll: "placed"}}];
        return new Mongo(host).getDB("other").runCommand({aggregate: "plain", pipeline, cursor: {}});
    }, st.s.host);
    running.start();
    point.wait();
    const [beside] = outputs();
    assert.soon(() => heldBy(d[beside], home) > 0);
    assert.commandWorked(admin.runCommand({movePrimary: "d", to}));
    assert.gt(heldBy(d[beside], home), 0);
    point.off();
    assert.commandWorked(running.returnData());
    assert.eq([], outputs());
    assert.eq(many.map((d) => d._id), d.placed.find().sort({_id: 1}).toArray().map((d) => d._id));
    assert.eq(many.length, heldBy(d.placed, home));
    assert(config.collections.findOne({_id: "d.placed"}).unsplittable);
    assert.eq([], d.runCommand({checkMetadataConsistency: 1}).cursor.firstBatch);
    assert(d.placed.drop());
}

// A client's collection may be called alike, and moves.
assert.commandWorked(d["tmp.agg_out.mine"].insert({_id: 1}));
assert.commandWorked(admin.runCommand({movePrimary: "d", to: first}));
assert.commandWorked(admin.runCommand({movePrimary: "d", to: second}));
assert.eq(1, d["tmp.agg_out.mine"].find().itcount());
st.stop();
