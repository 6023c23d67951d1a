/**
 * A router that does not know yet where a collection has gone renames it into a database that does not exist.
 * It fails if the database is made where the router believes the collection to be, for a collection that nobody has, or on every try anew.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const primaryOf = (name) => st.s0.getDB("config").databases.findOne({_id: name})?.primary;
assert.commandWorked(st.s0.adminCommand({enableSharding: "stale_from", primaryShard: first}));
assert.commandWorked(st.s0.getDB("stale_from").c.insert({_id: 1}));
assert.eq(1, st.s1.getDB("stale_from").c.find().itcount());
assert.commandWorked(st.s0.adminCommand({movePrimary: "stale_from", to: second}));

const rename = (from, to) => st.s1.adminCommand({renameCollection: `stale_from.${from}`, to: to});
assert.commandFailedWithCode(rename("none", "stale_to.c"), 26);
assert.eq(undefined, primaryOf("stale_to"));
assert.commandWorked(rename("c", "stale_to.c"));
assert.eq(second, primaryOf("stale_to"));
assert.eq([{_id: 1}], st.s1.getDB("stale_to").c.find().toArray());
assert.eq([{_id: 1}], st.s0.getDB("stale_to").c.find().toArray());

// Another shard's database is no place for it.
assert.commandWorked(st.s0.adminCommand({enableSharding: "stale_other", primaryShard: first}));
assert.commandFailedWithCode(st.s1.adminCommand({renameCollection: "stale_to.c", to: "stale_other.c"}), 125);
st.stop();
