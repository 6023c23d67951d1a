// Takes a shard out of the cluster and waits until it is gone.
export function removeShard(st, shardName, timeout = 5 * 60 * 1000) {
    const mongos = st.s || st;
    let reply;
    assert.soon(() => {
        reply = mongos.adminCommand({ removeShard: shardName });
        if (!reply.ok && reply.code === ErrorCodes.ShardNotFound) return true;
        assert.commandWorkedOrFailedWithCode(reply, [ErrorCodes.HostUnreachable, ErrorCodes.RemoveShardDrainingInProgress]);
        return reply.state === "completed";
    }, () => `shard ${shardName} is not removed: ${tojson(reply)}`, timeout, 50);
}
