// A sharded collection with given chunks on given shards.
import { findChunksUtil } from "jstests/sharding/libs/find_chunks_util.js";

export const CreateShardedCollectionUtil = {
    // `chunks`: [{min, max, shard}], covering the whole key space in order.
    shardCollectionWithChunks(coll, key, chunks, options = {}) {
        const conn = coll.getDB().getMongo();
        const ns = coll.getFullName();
        const command = (body) => assert.commandWorked(conn.adminCommand(body));
        assert.gt(chunks.length, 0, "no chunks");
        command({ enableSharding: coll.getDB().getName() });
        command({ shardCollection: ns, key, ...options });
        chunks.slice(1).forEach(({ min }) => {
            const known = findChunksUtil.findOneChunkByNs(conn.getDB("config"), ns, { min });
            if (known === null) command({ split: ns, middle: min });
        });
        for (const { min, max, shard } of chunks) {
            const present = findChunksUtil.findOneChunkByNs(conn.getDB("config"), ns, { min });
            if (present.shard !== shard) command({ moveChunk: ns, bounds: [min, max], to: shard, _waitForDelete: true });
        }
        return coll;
    },
};
