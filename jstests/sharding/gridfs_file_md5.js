/**
 * A GridFS file whose chunks lie on several shards has one sum.
 * Fails when a router asks one shard only, or adds the chunks shard by shard.
 */
const st = new ShardingTest({shards: 2});
const db = st.s.getDB("files");
assert.commandWorked(st.s.adminCommand({enableSharding: "files", primaryShard: st.shard0.shardName}));
for (const key of [{files_id: 1, n: 1}, {files_id: "hashed"}]) {
    const chunks = db.fs.chunks;
    chunks.drop();
    assert.commandWorked(st.s.adminCommand({shardCollection: "files.fs.chunks", key: key}));
    if (key.n) {
        assert.commandWorked(st.s.adminCommand({split: "files.fs.chunks", middle: {files_id: 1, n: 3}}));
        assert.commandWorked(st.s.adminCommand(
            {moveChunk: "files.fs.chunks", find: {files_id: 1, n: 3}, to: st.shard1.shardName, _waitForDelete: true}));
    } else {
        assert.commandWorked(chunks.createIndex({files_id: 1, n: 1}));
    }
    for (let n = 0; n < 9; n++) {
        assert.commandWorked(chunks.insert({files_id: 1, n: NumberInt(n), data: BinData(0, n % 2 ? "QUJD" : "REVG")}));
    }
    const reply = assert.commandWorked(db.runCommand({filemd5: 1}));
    assert.eq([9, hex_md5("DEFABC".repeat(4) + "DEF")], [Number(reply.numChunks), reply.md5]);
}
st.stop();
