// Chunks of a collection by its namespace: they are kept by its UUID.
const entryOf = (config, ns) => config.collections.findOne({ _id: ns });

export const findChunksUtil = {
    findChunksByNs(config, ns, query = {}, projection) {
        const entry = entryOf(config, ns);
        return config.chunks.find({ ...query, uuid: entry === null ? null : entry.uuid }, projection);
    },
    findOneChunkByNs(config, ns, query = {}) {
        return findChunksUtil.findChunksByNs(config, ns, query).limit(1).toArray()[0] ?? null;
    },
    countChunksForNs: (config, ns, query = {}) => findChunksUtil.findChunksByNs(config, ns, query).itcount(),
    getChunksJoinClause: (config, ns) => ({ uuid: entryOf(config, ns).uuid }),
};
