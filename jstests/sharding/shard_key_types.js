/**
 * Ranges are ordered over all types at once, from MinKey to MaxKey, with numbers equal across their types.
 * It fails if router and shard disagree on the order of types, or a document equal to a bound lands below it.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardByRanges, shardConnection, shardNames, shardsInPlan} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "shard_key_types", first);
const coll = testDB.c;

// One value of each type, in the order of comparison; a chunk begins at every one of them.
const values = [
    null, NumberInt(5), "text", {a: 1}, BinData(0, "AQID"), ObjectId("00000000000000000000000a"), true,
    new Date(1000), Timestamp(1, 1),
];
const points = values.map((value) => ({k: value}));
const owners = [first].concat(values.map((_, i) => i % 2 === 0 ? second : first));
shardByRanges(coll, {k: 1}, points, owners);

values.forEach((value, i) => {
    assert.commandWorked(coll.insert({_id: i, k: value}));
    const holder = shardConnection(db, owners[i + 1]).getDB(testDB.getName()).c;
    assert.eq(1, holder.find({_id: i}).itcount(), `${tojson(value)} must be on ${owners[i + 1]}`);
});
assert.commandWorked(coll.insert({_id: "min", k: MinKey}));
assert.commandWorked(coll.insert({_id: "max", k: MaxKey}));
assert.eq(1, coll.find({k: MinKey}).itcount());
assert.eq(1, coll.find({k: MaxKey}).itcount());
assert.eq([first], shardsInPlan(coll.find({k: MinKey}).explain()));
assert.eq([owners[owners.length - 1]], shardsInPlan(coll.find({k: MaxKey}).explain()));

// In the order of the key every value comes where its type stands.
const sorted = coll.find().sort({k: 1}).toArray().map((d) => d._id);
assert.eq(["min"].concat(values.map((_, i) => i), ["max"]), sorted);

// Five is five, whatever holds it.
for (const five of [5, NumberLong(5), NumberDecimal("5"), NumberDecimal("5.000")]) {
    assert.eq(1, coll.find({k: five}).itcount(), tojson(five));
    assert.eq([owners[2]], shardsInPlan(coll.find({k: five}).explain()), tojson(five));
}
assert.eq([owners[1]], shardsInPlan(coll.find({k: NumberDecimal("4.999")}).explain()));

// A comparison looks only at its own type; its range ends with it.
assert.eq(1, coll.find({k: {$gte: 0}}).itcount());
assert.eq(1, coll.find({k: {$gte: ""}}).itcount());

// Negative zero, infinities and NaN have one place each.
assert.commandWorked(coll.insert([{_id: "nan", k: NaN}, {_id: "inf", k: Infinity}, {_id: "zero", k: -0.0}]));
assert.eq("nan", coll.findOne({k: NaN})._id);
assert.eq("inf", coll.findOne({k: Infinity})._id);
assert.eq("zero", coll.findOne({k: 0})._id);
assert.eq(["nan", "zero"], coll.find({_id: {$in: ["nan", "zero"]}}).sort({k: 1}).toArray().map((d) => d._id));
assert.commandWorked(testDB.dropDatabase());
