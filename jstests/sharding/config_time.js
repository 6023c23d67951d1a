/**
 * Nodes know up to when they have heard of the config server, write it down beside what they have read of placement, and believe no client that
 * names such a time. It fails if a shard's record lacks it or does not follow a change, if clients are told of it, or if a client's word makes
 * a node wait for a catalog that will never be.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "config_time", {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
const shard = shardConnection(db, second);

const known = () => shard.getDB("config").vectorClock.findOne({_id: "vectorClockState"});
assert.soon(() => known() !== null);
const before = known();
assert.eq("Timestamp", before.configTime.constructor.name, tojson(before));
assert.eq("Timestamp", before.topologyTime.constructor.name, tojson(before));

const moved = assert.commandWorked(db.adminCommand({moveChunk: coll.getFullName(), find: {x: -1}, to: second, _waitForDelete: true}));
assert.soon(() => timestampCmp(known().configTime, before.configTime) > 0, () => tojson([before, known()]));
assert.eq(undefined, moved.$configTime, "clients have nothing to do with it");
assert.eq(undefined, assert.commandWorked(shard.adminCommand({ping: 1})).$configTime);

// No client moves it, through whatever node.
const later = Timestamp(before.configTime.getTime() + 3600, 1);
for (const node of [db.getMongo(), shard]) {
    assert.commandWorked(node.adminCommand({ping: 1, $configTime: later}));
    assert.commandWorked(node.getDB(coll.getDB().getName()).runCommand({find: coll.getName(), $configTime: later}));
}
assert.commandWorked(db.adminCommand({flushRouterConfig: 1}));
assert.commandWorked(shard.adminCommand({_flushRoutingTableCacheUpdates: coll.getFullName()}));
assert.eq(2, coll.find().itcount());
assert.lt(timestampCmp(known().configTime, later), 0, tojson(known()));
