/**
 * The checks that run when a cluster stops see what a broken server would leave behind: each fault planted here is found by its check,
 * and a healthy cluster passes all of them. It fails if a check would pass over such a fault, or complains of nothing.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";

const st = new ShardingTest({ shards: 2 });
assert.commandWorked(st.s.adminCommand({ enableSharding: "test", primaryShard: st.shard0.shardName }));
st.shardColl(st.s.getDB("test").c, { x: 1 }, { x: 0 }, { x: 0 });
st.shardColl(st.s.getDB("test").hashed, { _id: "hashed" }, false);
assert.commandWorked(st.s.getDB("test").c.insert([{ _id: 1, x: -1 }, { _id: 2, x: 1 }]));
const ns = "test.c";
const config = st.configRS.getPrimary().getDB("config");
const entry = config.collections.findOne({ _id: ns });
const chunks = config.chunks.find({ uuid: entry.uuid }).sort({ min: 1 }).toArray();

function finds(name, text, { plant, mend }) {
    st[name]();
    plant();
    const error = assert.throws(() => st[name]({ timeout: 500 }), [], `${name} sees nothing`);
    assert(text.test(error.message), error.message);
    mend();
    st[name]();
}
const skipped = (flag, name) => {
    TestData[flag] = true;
    st[name]({ timeout: 500 });
    delete TestData[flag];
};

finds("checkOrphansAreDeleted", /range deletions are still waiting/, {
    plant: () => st.rs0.getPrimary().getDB("config").rangeDeletions.insert({ _id: UUID(), nss: ns, pending: true }),
    mend: () => st.rs0.getPrimary().getDB("config").rangeDeletions.remove({}),
});
finds("checkIndexesConsistentAcrossCluster", /test\.c: .*y_1/, {
    plant: () => {
        assert.commandWorked(st.rs1.getPrimary().getDB("test").c.createIndex({ y: 1 }));
        skipped("skipCheckingIndexesConsistentAcrossCluster", "checkIndexesConsistentAcrossCluster");
    },
    mend: () => assert.commandWorked(st.rs1.getPrimary().getDB("test").c.dropIndex("y_1")),
});
finds("checkRoutingTableConsistency", /gap or an overlap/, {
    plant: () => {
        assert.commandWorked(config.chunks.update({ _id: chunks[1]._id }, { $set: { min: { x: 1 } } }));
        skipped("skipCheckRoutingTableConsistency", "checkRoutingTableConsistency");
    },
    mend: () => config.chunks.update({ _id: chunks[1]._id }, { $set: { min: { x: 0 } } }),
});
finds("checkRoutingTableConsistency", /which is no shard/, {
    plant: () => config.chunks.update({ _id: chunks[1]._id }, { $set: { shard: "nobody" } }),
    mend: () => config.chunks.update({ _id: chunks[1]._id }, { $set: { shard: chunks[1].shard } }),
});
finds("checkShardFilteringMetadata", /believes to own/, {
    plant: () => {
        config.chunks.update({ _id: chunks[0]._id }, { $set: { "max.x": -5 } });
        skipped("skipCheckShardFilteringMetadata", "checkShardFilteringMetadata");
    },
    mend: () => config.chunks.update({ _id: chunks[0]._id }, { $set: { "max.x": 0 } }),
});
finds("checkMetadataConsistency", /RoutingTableRangeGap/, {
    plant: () => {
        config.chunks.update({ _id: chunks[0]._id }, { $set: { "max.x": -5 } });
        skipped("skipCheckMetadataConsistency", "checkMetadataConsistency");
    },
    mend: () => config.chunks.update({ _id: chunks[0]._id }, { $set: { "max.x": 0 } }),
});
finds("checkUUIDsConsistentAcrossCluster", /in the catalog/, {
    plant: () => {
        config.collections.update({ _id: ns }, { $set: { uuid: UUID() } });
        config.chunks.update({ uuid: entry.uuid }, { $set: { uuid: config.collections.findOne({ _id: ns }).uuid } }, { multi: true });
        skipped("skipCheckingUUIDsConsistentAcrossCluster", "checkUUIDsConsistentAcrossCluster");
    },
    mend: () => {
        const planted = config.collections.findOne({ _id: ns }).uuid;
        config.collections.update({ _id: ns }, { $set: { uuid: entry.uuid } });
        config.chunks.update({ uuid: planted }, { $set: { uuid: entry.uuid } }, { multi: true });
    },
});

// An orphan is seen by its check, and by stop(), which ends every process all the same.
assert.commandWorked(st.rs1.getPrimary().getDB("test").c.insert({ _id: 3, x: -7 }));
skipped("skipCheckOrphans", "checkOrphansAreDeleted");
for (const act of [() => st.checkOrphansAreDeleted(), () => st.stop()]) {
    const { message } = assert.throws(act);
    assert(/test\.c: .*-rs1 holds .*-7/.test(message), message);
}
assert.eq([], MongoRunner.runningChildPids());
