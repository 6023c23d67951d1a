// Bounds of chunks as arrays [min, max], grouped by shard.
export const chunkBoundsUtil = {
    eq: (a, b) => bsonWoCompare(a, b) === 0,
    gte: (a, b) => bsonWoCompare(a, b) >= 0,
    lt: (a, b) => bsonWoCompare(a, b) < 0,
    max: (a, b) => (bsonWoCompare(a, b) >= 0 ? a : b),
    min: (a, b) => (bsonWoCompare(a, b) <= 0 ? a : b),
    containsKey: (value, min, max) => bsonWoCompare(value, min) >= 0 && bsonWoCompare(value, max) < 0,
    // shardName -> its bounds, lowest first.
    findShardChunkBounds(chunks) {
        const all = {};
        for (const chunk of chunks) (all[chunk.shard] = all[chunk.shard] || []).push([chunk.min, chunk.max]);
        Object.values(all).forEach((list) => list.sort((a, b) => bsonWoCompare(a[0], b[0])));
        return all;
    },
    // The first connection whose bounds contain the key.
    findShardForShardKey(st, all, value) {
        const found = Object.keys(all).find((name) => all[name].some(([min, max]) => chunkBoundsUtil.containsKey(value, min, max)));
        return st._connections.find((conn) => conn.shardName === found);
    },
    findShardAndChunkBoundsForShardKey(st, all, value) {
        const shard = chunkBoundsUtil.findShardForShardKey(st, all, value);
        return { shard, bounds: all[shard.shardName].find(([min, max]) => chunkBoundsUtil.containsKey(value, min, max)) };
    },
    computeRange(list) {
        return list.reduce(([low, high], [min, max]) => [chunkBoundsUtil.min(low, min), chunkBoundsUtil.max(high, max)]);
    },
};
