// What kind of deployment a connection leads to, and which nodes belong to it.
export const Topology = { kStandalone: "stand-alone", kRouter: "mongos router", kReplicaSet: "replica set", kShardedCluster: "sharded cluster" };

const connectTo = (host, options) => (options && options.connectFn ? options.connectFn(host) : new Mongo(host));
const hello = (conn) => assert.commandWorked(conn.adminCommand({ hello: 1 }));

function ofSet(reply) {
    return { type: Topology.kReplicaSet, primary: reply.primary, nodes: [...reply.hosts, ...(reply.passives || [])] };
}
function ofDataNode(conn) {
    const reply = hello(conn);
    return reply.setName === undefined ? { type: Topology.kStandalone, mongod: reply.me || conn.host } : ofSet(reply);
}

export const DiscoverTopology = {
    // {type, ...}: a standalone's `mongod`; a set's `primary` and `nodes`; a cluster's `shards`, `configsvr`, `mongos`.
    findConnectedNodes(conn, options) {
        if (hello(conn).msg !== "isdbgrid") return ofDataNode(conn);
        const { shards } = assert.commandWorked(conn.adminCommand({ listShards: 1 }));
        const byId = Object.fromEntries(shards.map((shard) => [shard._id, ofDataNode(connectTo(shard.host, options))]));
        const { map } = assert.commandWorked(conn.adminCommand({ getShardMap: 1 }));
        const routers = conn.getDB("config").mongos.find().toArray().map((entry) => entry._id);
        return {
            type: Topology.kShardedCluster,
            shards: byId,
            configsvr: ofDataNode(connectTo(map.config, options)),
            mongos: { type: Topology.kRouter, nodes: routers.length > 0 ? routers : [conn.host] },
        };
    },
    addNonConfigNodesToList(topology, hosts) {
        if (topology.type === Topology.kStandalone) hosts.push(topology.mongod);
        else if (topology.type === Topology.kReplicaSet || topology.type === Topology.kRouter) hosts.push(...topology.nodes);
        else {
            Object.values(topology.shards).forEach((shard) => DiscoverTopology.addNonConfigNodesToList(shard, hosts));
            DiscoverTopology.addNonConfigNodesToList(topology.mongos, hosts);
        }
        return hosts;
    },
    findNonConfigNodes(conn) {
        return DiscoverTopology.addNonConfigNodesToList(DiscoverTopology.findConnectedNodes(conn), []);
    },
};
