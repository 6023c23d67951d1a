// Whether the config servers are a shard too.
export const ConfigShardUtil = {
    isConfigShard: (mongos) => mongos.getDB("config").shards.findOne({ _id: "config" }) !== null,
};
export const isConfigShardEnabled = ConfigShardUtil.isConfigShard;
