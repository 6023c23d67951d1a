/**
 * Zones say where ranges belong; their commands keep shards' zones and collections' ranges free of contradictions.
 * It fails if ranges overlap, a zone in use is taken from its last shard, or a bound is not extended to the whole key.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "zone_commands", first);
const config = db.getSiblingDB("config");
const ns = `${testDB.getName()}.c`;
const zonesOf = (name) => config.shards.findOne({_id: name}).tags || [];
const ranges = () => config.tags.find({ns: ns}).sort({min: 1}).toArray().map((t) => [t.min, t.max, t.tag]);
const add = (shard, zone) => db.adminCommand({addShardToZone: shard, zone: zone});
const remove = (shard, zone) => db.adminCommand({removeShardFromZone: shard, zone: zone});
const range = (min, max, zone) => db.adminCommand({updateZoneKeyRange: ns, min: min, max: max, zone: zone});

assert.commandWorked(add(first, "east"));
assert.commandWorked(add(first, "east"));
assert.commandWorked(add(first, "old"));
assert.commandWorked(add(second, "west"));
assert.sameMembers(["east", "old"], zonesOf(first).filter((z) => ["east", "old"].includes(z)));
assert.commandWorked(remove(first, "old"));
assert.commandWorked(remove(first, "old"));
assert(!zonesOf(first).includes("old"));
assert.commandFailedWithCode(add("no such shard", "east"), 70);
assert.commandFailedWithCode(remove("no such shard", "east"), 70);
assert.commandFailedWithCode(db.adminCommand({addShardToZone: first}), [9, 40414]);

// Before the collection is sharded any key will do.
assert.commandFailedWithCode(range({x: 0}, {x: 10}, "nowhere"), 177);
assert.commandWorked(range({x: 0}, {x: 10}, "east"));
assert.commandWorked(range({x: 0}, {x: 10}, "east"));
assert.commandWorked(range({x: 10}, {x: 20}, "west"));
assert.eq([[{x: 0}, {x: 10}, "east"], [{x: 10}, {x: 20}, "west"]], ranges());

// Overlaps in any form.
for (const [min, max] of [[5, 15], [-5, 5], [0, 5], [1, 9], [-5, 25], [0, 20]]) {
    assert.commandFailedWithCode(range({x: min}, {x: max}, "east"), 178, tojson([min, max]));
}
assert.commandFailedWithCode(range({x: 10}, {x: 20}, "east"), 178);
assert.commandFailed(range({x: 30}, {x: 25}, "east"));
assert.commandFailed(range({x: 30}, {x: 30}, "east"));
assert.commandFailedWithCode(db.adminCommand({updateZoneKeyRange: ns, min: {x: 0}, zone: "east"}), [9, 40414]);

// The last shard of a zone with ranges must stay in it.
assert.commandFailedWithCode(remove(first, "east"), 163);
assert.commandWorked(add(second, "east"));
assert.commandWorked(remove(first, "east"));
assert.commandWorked(add(first, "east"));
assert.commandWorked(remove(second, "east"));

// A zone that is none, or is forgotten, removes nothing.
for (const wrong of [1, {}, true]) {
    assert.commandFailedWithCode(range({x: 0}, {x: 10}, wrong), 14);
}
assert.commandFailedWithCode(db.adminCommand({updateZoneKeyRange: ns, min: {x: 0}, max: {x: 10}}), 40414);
assert.commandFailedWithCode(
    db.adminCommand({updateZoneKeyRange: ns, min: {x: 0}, max: {x: 10}, zone: null, force: true}), 40415);
assert.commandFailedWithCode(db.adminCommand({updateZoneKeyRange: "nodot", min: {x: 0}, max: {x: 1}, zone: "east"}), 73);
for (const command of ["addShardToZone", "removeShardFromZone"]) {
    assert.commandFailedWithCode(db.adminCommand({[command]: 1, zone: "east"}), 14);
    assert.commandFailedWithCode(db.adminCommand({[command]: "", zone: "east"}), 70);
    assert.commandFailedWithCode(db.adminCommand({[command]: first, zone: 1}), 14);
}
assert.eq([[{x: 0}, {x: 10}, "east"], [{x: 10}, {x: 20}, "west"]], ranges());

// Removing: exactly this range.
assert.commandWorked(range({x: 0}, {x: 10}, null));
assert.commandWorked(range({x: 77}, {x: 78}, null));
assert.eq([[{x: 10}, {x: 20}, "west"]], ranges());
assert.commandWorked(range({x: 10}, {x: 20}, null));
assert.eq([], ranges());
assert.commandWorked(remove(first, "east"));
assert.commandWorked(add(first, "east"));

// A sharded collection: bounds are prefixes of its key, and are filled up.
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1, y: 1}}));
assert.commandWorked(range({x: 0}, {x: 10}, "east"));
assert.eq([[{x: 0, y: MinKey}, {x: 10, y: MinKey}, "east"]], ranges());
assert.commandWorked(range({x: 10, y: 5}, {x: 10, y: 7}, "west"));
assert.commandFailedWithCode(range({y: 0}, {y: 10}, "east"), 61);
assert.commandFailedWithCode(range({x: 50, y: 1, z: 1}, {x: 60, y: 1, z: 1}, "east"), 61);
assert.commandWorked(range({x: 0, y: MinKey}, {x: 10, y: MinKey}, null));
assert.commandWorked(range({x: 10, y: 5}, {x: 10, y: 7}, null));

// Hashed fields have hashes as bounds.
const hashed = `${testDB.getName()}.h`;
assert.commandWorked(db.adminCommand({shardCollection: hashed, key: {x: "hashed"}}));
const hashes = (min, max) => db.adminCommand({updateZoneKeyRange: hashed, min: {x: min}, max: {x: max}, zone: "east"});
assert.commandWorked(hashes(MinKey, NumberLong(0)));
assert.commandFailedWithCode(hashes(5.5, NumberLong(10)), 72);
assert.commandFailedWithCode(hashes("a", "b"), 72);
assert.commandWorked(db.adminCommand({updateZoneKeyRange: hashed, min: {x: MinKey}, max: {x: NumberLong(0)}, zone: null}));

assert.commandWorked(remove(first, "east"));
assert.commandWorked(remove(second, "west"));
assert.commandWorked(testDB.dropDatabase());
