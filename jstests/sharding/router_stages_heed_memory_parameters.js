/**
 * The parameters that say how much memory a stage may hold count for the part of a pipeline that runs on the router.
 * It fails if a router takes them and does not read them.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2});
const db = st.s.getDB("stages");
assert.commandWorked(st.s.adminCommand({shardCollection: "stages.c", key: {_id: "hashed"}}));
assert.commandWorked(db.c.insert([...Array(200).keys()].map(i => ({_id: i, s: i + "x".repeat(1000)}))));
const groups = () => db.runCommand({aggregate: "c", pipeline: [{$group: {_id: "$s"}}], cursor: {}});
const limit = (bytes) => assert.commandWorked(st.s.adminCommand({setParameter: 1, internalDocumentSourceGroupMaxMemoryBytes: bytes})).was;

assert.commandWorked(groups());
const was = limit(1000);
assert.commandFailedWithCode(groups(), ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed);
limit(was);
assert.commandWorked(groups());
st.stop();
