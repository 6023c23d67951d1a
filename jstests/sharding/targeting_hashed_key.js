/**
 * Placement by a hashed key must agree between the shell's hash, the router and the shards, for every type of number.
 * It fails if a shard or router hashes a value differently, or if a range over a hashed field is sent to one shard.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    freshDatabase,
    shardConnection,
    shardNames,
    shardsInPlan
} from "jstests/sharding/libs/cluster.js";

const names = shardNames(db);
const testDB = freshDatabase(db, "targeting_hashed_key");
const coll = testDB.c;
assert.commandWorked(db.adminCommand({shardCollection: coll.getFullName(), key: {x: "hashed"}}));
const chunks = chunksOf(coll);
assert.gt(chunks.length, 1);

function ownerOfHash(value) {
    const hash = convertShardKeyToHashed(value);
    const chunk = chunks.find((c) => bsonWoCompare({x: c.min.x}, {x: hash}) <= 0 &&
                                  bsonWoCompare({x: hash}, {x: c.max.x}) < 0);
    assert(chunk, `no chunk holds ${tojson(hash)}`);
    return chunk.shard;
}

const values = [
    0, 1, -1, 2.5, 1e9, NumberLong("4611686018427387904"), "a", "", null, true, new Date(0),
    ObjectId("000000000000000000000001"), {a: 1, b: [1, 2]}, BinData(0, "AAAA"), UUID("00000000-0000-4000-8000-000000000000"),
];
for (let i = 0; i < 60; i++) {
    values.push(i * 17 + 3);
}
values.forEach((value, i) => {
    assert.commandWorked(coll.insert({_id: i, x: value}));
    const owner = ownerOfHash(value);
    const direct = shardConnection(db, owner).getDB(testDB.getName()).c;
    assert.eq(1, direct.find({_id: i}).itcount(), `${tojson(value)} is not on ${owner}`);
    assert.eq([owner], shardsInPlan(coll.find({x: value}).explain()), tojson(value));
    assert.eq(1, coll.find({_id: i, x: value}).itcount(), tojson(value));
});

// Numbers are hashed by their integer value, whatever their type.
for (const seven of [7, NumberInt(7), NumberLong(7), 7.0, 7.9, NumberDecimal("7")]) {
    assert.eq(convertShardKeyToHashed(7), convertShardKeyToHashed(seven), tojson(seven));
}
assert.neq(convertShardKeyToHashed(7), convertShardKeyToHashed("7"));

// A range says nothing of hashes; a list of values does.
assert.eq(names.slice().sort(), shardsInPlan(coll.find({x: {$gt: 0, $lt: 2}}).explain()));
const three = [3, 20, 37];
const expected = Array.from(new Set(three.map(ownerOfHash))).sort();
assert.eq(expected, shardsInPlan(coll.find({x: {$in: three}}).explain()));
assert.eq(3, coll.find({x: {$in: three}}).itcount());
assert.commandWorked(testDB.dropDatabase());
