// Indexes of a sharded collection on its shards.
const names = (conn, db, coll) => conn.getDB(db).getCollection(coll).getIndexes();

export const ShardedIndexUtil = {
    assertIndexExistsOnShard(shard, db, coll, key) {
        assert(names(shard, db, coll).some((spec) => bsonWoCompare(spec.key, key) === 0), `no ${tojson(key)} on ${shard.host}`);
    },
    assertIndexDoesNotExistOnShard(shard, db, coll, key) {
        assert(!names(shard, db, coll).some((spec) => bsonWoCompare(spec.key, key) === 0), `${tojson(key)} on ${shard.host}`);
    },
    // Indexes that not all of these shards have: [{shardName: [index, ...]}].
    findInconsistentIndexesAcrossShards(byShard) {
        const text = (spec) => tojson(spec);
        const lists = Object.values(byShard).map((list) => new Set(list.map(text)));
        const common = (spec) => lists.every((set) => set.has(text(spec)));
        return Object.fromEntries(Object.entries(byShard).map(([name, list]) => [name, list.filter((spec) => !common(spec))]));
    },
};
