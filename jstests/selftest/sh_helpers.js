/**
 * `sh` speaks to the cluster that `db` is connected to, and printShardingStatus shows it.
 * It fails if a helper sends another command, accepts a namespace without a dot, or prints a cluster that is not there.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({ shards: 2 });
globalThis.db = st.s.getDB("test");
const [first, second] = [st.shard0.shardName, st.shard1.shardName];

assert.commandWorked(sh.enableSharding("test", first));
assert.commandWorked(sh.shardCollection("test.c", { x: 1 }, false, { numInitialChunks: 0 }));
assert.throws(() => sh.shardCollection("c", { x: 1 }));
assert.throws(() => sh.shardCollection("test.other", { x: 1 }, "yes"));
assert.commandWorked(sh.splitAt("test.c", { x: 0 }));
assert.commandWorked(sh.splitAt("test.c", { x: 10 }));
assert.commandWorked(sh.moveChunk("test.c", { x: 5 }, second));
assert.commandWorked(sh.moveRange("test.c", second, { x: 10 }, { x: MaxKey }));
const on = (name) => st.config.chunks.find({ shard: name }).itcount();
assert.eq([1, 2], [on(first), on(second)]);
assert.eq([first, second], sh.listShards().map((s) => s._id).sort());
assert.eq("success", sh._lastMigration("test.c").details.note ?? "success");
assert.gte(sh.getRecentMigrations().find((one) => one._id === "Success").count, 2);

// Zones.
assert.commandWorked(sh.addShardTag(second, "far"));
assert.commandWorked(sh.addTagRange("test.c", { x: 0 }, { x: 10 }, "far"));
assert.eq(["far"], st.config.shards.findOne({ _id: second }).tags);
assert.eq(1, st.config.tags.find({ ns: "test.c", tag: "far" }).itcount());
assert.throws(() => sh.addTagRange("test.c", { x: 1 }, { x: 1 }, "far"));

const printed = [];
const realPrint = globalThis.print;
globalThis.print = (line) => printed.push(line);
try {
    sh.status(true);
    sh.help();
} finally {
    globalThis.print = realPrint;
}
const text = printed.join("\n");
for (const expected of ["--- Sharding Status ---", "test.c", first, second, "chunks:", "tag: far", "Currently enabled:  no", '{ "x" : 0 } -->> { "x" : 10 }']) {
    assert(text.includes(expected), `${expected} is not in ${text}`);
}

assert.commandWorked(sh.removeTagRange("test.c", { x: 0 }, { x: 10 }, "far"));
assert.commandWorked(sh.removeShardTag(second, "far"));
assert.eq(0, st.config.tags.find().itcount());
globalThis.db = st.rs0.getPrimary().getDB("test");
assert.throws(() => sh.splitAt("test.c", { x: 3 }), [], "a shard is no router");
st.stop();
