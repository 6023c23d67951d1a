/**
 * A collection sharded after its zones were defined begins with chunks that respect them.
 * It fails if the first chunks ignore zones, leave gaps beside them, or lie on shards outside the zone.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshDatabase, pauseBalancer, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const resume = pauseBalancer(db);
const testDB = freshDatabase(db, "zones_place_first_chunks", first);
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({addShardToZone: first, zone: "cold"}));
assert.commandWorked(db.adminCommand({addShardToZone: second, zone: "hot"}));
const range = (min, max, zone) => assert.commandWorked(
    db.adminCommand({updateZoneKeyRange: ns, min: {x: min}, max: {x: max}, zone: zone}));
range(MinKey, 0, "cold");
range(0, 100, "hot");
range(200, 300, "hot");

assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
const chunks = chunksOf(coll);
assert.eq([MinKey, 0, 100, 200, 300], chunks.map((c) => c.min.x));
assert.eq({x: MaxKey}, chunks[4].max);
assert.eq([first, second, second], [chunks[0], chunks[1], chunks[3]].map((c) => c.shard));
assert.commandWorked(coll.insert([{x: -5}, {x: 5}, {x: 150}, {x: 250}, {x: 350}]));
assert.eq([second], shardsInPlan(coll.find({x: {$gte: 0, $lt: 99}}).explain()));
assert.eq(5, coll.find().itcount());

// A collection that holds documents is not divided by its zones: the balancer will do that.
const filled = testDB.filled;
assert.commandWorked(filled.insert({x: 1}));
assert.commandWorked(filled.createIndex({x: 1}));
assert.commandWorked(db.adminCommand(
    {updateZoneKeyRange: filled.getFullName(), min: {x: 0}, max: {x: 10}, zone: "hot"}));
assert.commandWorked(db.adminCommand({shardCollection: filled.getFullName(), key: {x: 1}}));
assert.eq([first], chunksOf(filled).map((c) => c.shard));
let status = assert.commandWorked(db.adminCommand({balancerCollectionStatus: filled.getFullName()}));
assert.eq(false, status.balancerCompliant);
assert.eq("zoneViolation", status.firstComplianceViolation);

// A range moved out of its zone is a violation, too.
status = assert.commandWorked(db.adminCommand({balancerCollectionStatus: ns}));
assert.eq(true, status.balancerCompliant, tojson(status));
assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: 0}, max: {x: 100}, toShard: first}));
status = assert.commandWorked(db.adminCommand({balancerCollectionStatus: ns}));
assert.eq("zoneViolation", status.firstComplianceViolation);

// The hashes of a zone are divided among its shards, where that is asked for.
const hashed = testDB.hashed;
assert.commandWorked(db.adminCommand({addShardToZone: first, zone: "hot"}));
for (const [min, max, zone] of [[0, 10, "hot"], [10, 20, "cold"]]) {
    assert.commandWorked(db.adminCommand({
        updateZoneKeyRange: hashed.getFullName(), min: {x: min, h: MinKey}, max: {x: max, h: MinKey}, zone: zone}));
}
const presplit = (key) => db.adminCommand({shardCollection: hashed.getFullName(), key: key, presplitHashedZones: true});
assert.commandFailedWithCode(presplit({x: 1, h: 1}), 72);
assert.commandFailedWithCode(presplit({x: "hashed", h: 1}), 72);
assert.commandWorked(presplit({x: 1, h: "hashed"}));
const divided = chunksOf(hashed).filter((c) => c.min.x === 0);
assert.eq(2, divided.length, tojson(divided));
assert.eq([{x: 0, h: MinKey}, {x: 0, h: NumberLong(0)}], divided.map((c) => c.min));
assert.sameMembers([first, second], divided.map((c) => c.shard));
assert.eq([first], chunksOf(hashed).filter((c) => c.min.x === 10).map((c) => c.shard));
assert.commandWorked(hashed.insert([{x: 0, h: 1}, {x: 5, h: 2}, {x: 15, h: 3}]));
assert.eq(3, hashed.find().itcount());
assert.eq([first], shardsInPlan(hashed.find({x: 15, h: 3}).explain()));

// A key that does not go with the zones is refused.
const other = testDB.other;
assert.commandWorked(db.adminCommand(
    {updateZoneKeyRange: other.getFullName(), min: {y: 0}, max: {y: 10}, zone: "hot"}));
assert.commandFailedWithCode(db.adminCommand({shardCollection: other.getFullName(), key: {x: 1}}), 72);
assert.commandWorked(db.adminCommand(
    {updateZoneKeyRange: other.getFullName(), min: {y: 0}, max: {y: 10}, zone: null}));
assert.commandWorked(testDB.dropDatabase());
db.getSiblingDB("config").tags.remove({ns: {$regex: `^${testDB.getName()}\\.`}});
assert.commandWorked(db.adminCommand({removeShardFromZone: first, zone: "cold"}));
assert.commandWorked(db.adminCommand({removeShardFromZone: second, zone: "hot"}));
assert.commandWorked(db.adminCommand({removeShardFromZone: first, zone: "hot"}));
resume();
