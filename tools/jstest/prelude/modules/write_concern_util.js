// Write concerns that cannot be satisfied, and what a reply says of them.
export function assertWriteConcernError(reply) {
    assert(reply.writeConcernError, "no writeConcernError in " + tojson(reply));
    assert(reply.writeConcernError.code, "a writeConcernError without a code in " + tojson(reply));
    assert(reply.writeConcernError.errmsg, "a writeConcernError without a text in " + tojson(reply));
}
function setReplication(nodes, mode) {
    const list = Array.isArray(nodes) ? nodes : [nodes];
    list.forEach((node) => assert.commandWorked(node.adminCommand({ configureFailPoint: "stopReplProducer", mode })));
}
export const stopServerReplication = (nodes) => setReplication(nodes, "alwaysOn");
export const restartServerReplication = (nodes) => setReplication(nodes, "off");
export const stopReplicationOnSecondaries = (set) => stopServerReplication(set.getSecondaries());
export const restartReplicationOnSecondaries = (set) => restartServerReplication(set.getSecondaries());
export function stopReplicationOnAllShards(st) {
    st._rs.forEach(({ test }) => stopReplicationOnSecondaries(test));
}
export function restartReplicationOnAllShards(st) {
    st._rs.forEach(({ test }) => restartReplicationOnSecondaries(test));
}
export function stopAdditionalSecondariesIfSyncSource(set, nodes) {
    stopServerReplication(nodes);
}
// Shards `coll` on `key` with one chunk on each of two shards.
export function shardCollectionWithChunks(st, coll, count) {
    const ns = coll.getFullName();
    assert.commandWorked(st.s.adminCommand({ enableSharding: coll.getDB().getName(), primaryShard: st.shard0.shardName }));
    const middle = Math.floor(count / 2);
    coll.createIndex({ x: 1 });
    st.shardColl(coll, { x: 1 }, { x: middle }, { x: middle });
    for (let i = 0; i < count; i++) assert.commandWorked(coll.insert({ x: i }));
    assert.gt(st.config.collections.find({ _id: ns }).itcount(), 0);
}
