/**
 * A shard key may hash one of its fields and order the others, first or later.
 * It fails if the hash is applied to the wrong field, or if a prefix without the hashed field is not targeted.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    freshDatabase,
    shardByRanges,
    shardNames,
    shardsInPlan
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "targeting_hashed_compound_key", first);

// The hashed field comes second: the first one orders.
const suffix = testDB.suffix;
shardByRanges(suffix, {region: 1, user: "hashed"}, [{region: "m", user: MinKey}], [first, second]);
for (let i = 0; i < 20; i++) {
    assert.commandWorked(suffix.insert([{region: "asia", user: i}, {region: "west", user: i}]));
}
assert.eq([first], shardsInPlan(suffix.find({region: "asia"}).explain()));
assert.eq([second], shardsInPlan(suffix.find({region: "west", user: 3}).explain()));
assert.eq([first, second].sort(), shardsInPlan(suffix.find({user: 3}).explain()));
assert.eq(20, suffix.find({region: "west"}).itcount());
assert.eq(2, suffix.find({user: 3}).itcount());

// A split between two hashes of one region.
const middle = convertShardKeyToHashed(7);
assert.commandWorked(db.adminCommand({split: suffix.getFullName(), middle: {region: "west", user: middle}}));
const parts = chunksOf(suffix).filter((c) => c.min.region === "west" || c.max.region === "west");
assert.eq(2, parts.length, tojson(parts));
assert.commandFailed(db.adminCommand({split: suffix.getFullName(), middle: {region: "west", user: "text"}}));

// The hashed field comes first: the whole is spread at once.
const prefix = testDB.prefix;
assert.commandWorked(db.adminCommand({shardCollection: prefix.getFullName(), key: {user: "hashed", n: 1}}));
const owners = new Set(chunksOf(prefix).map((c) => c.shard));
assert.gt(owners.size, 1);
assert.eq(typeof chunksOf(prefix)[1].min.user, "object", "bounds are 64-bit hashes");
for (let i = 0; i < 40; i++) {
    assert.commandWorked(prefix.insert({user: i, n: -i}));
}
assert.eq(1, shardsInPlan(prefix.find({user: 5, n: -5}).explain()).length);
assert.eq(1, prefix.find({user: 5, n: -5}).itcount());
assert.eq(40, prefix.find().itcount());

// Only one field may be hashed.
assert.commandFailed(
    db.adminCommand({shardCollection: testDB.both.getFullName(), key: {a: "hashed", b: "hashed"}}));
assert.commandWorked(testDB.dropDatabase());
