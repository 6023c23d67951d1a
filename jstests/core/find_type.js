/**
 * $type selects by BSON type, by number, by name and by list.
 * Fails when a type answers to another number or name, "number" leaves one of the four out, or an unknown one is taken.
 */
const coll = db.find_type;
coll.drop();
const values = [
    ["double", 1, 1.5],
    ["string", 2, "s"],
    ["object", 3, {x: 1}],
    ["binData", 5, BinData(0, "AAAA")],
    ["objectId", 7, ObjectId()],
    ["bool", 8, true],
    ["date", 9, new Date(0)],
    ["null", 10, null],
    ["regex", 11, /x/],
    ["int", 16, NumberInt(1)],
    ["timestamp", 17, Timestamp(1, 1)],
    ["long", 18, NumberLong(1)],
    ["decimal", 19, NumberDecimal("1")],
    ["minKey", -1, MinKey],
    ["maxKey", 127, MaxKey],
];
values.forEach(([name, number, value], i) => assert.commandWorked(coll.insert({_id: i, name: name, v: value})));

for (const [name, number] of values) {
    for (const type of [name, number, NumberLong(number), [name], [number, name]]) {
        const found = coll.find({v: {$type: type}}).toArray();
        assert.eq([name], found.map(doc => doc.name), () => tojson(type));
    }
}
assert.sameMembers(["double", "int", "long", "decimal"], coll.find({v: {$type: "number"}}).toArray().map(doc => doc.name));
assert.sameMembers(["string", "bool"], coll.find({v: {$type: ["string", 8]}}).toArray().map(doc => doc.name));

// An array is of type "array", and of the types of its elements.
assert.commandWorked(coll.insert({_id: "array", name: "array", v: ["s", [1.5]]}));
assert.eq(["array"], coll.find({v: {$type: "array"}}).toArray().map(doc => doc.name));
assert.sameMembers(["array", "string"], coll.find({v: {$type: "string"}}).toArray().map(doc => doc.name));
assert.eq(["double"], coll.find({v: {$type: "double"}}).toArray().map(doc => doc.name));

for (const type of ["String", "unheardOf", 0, 128, 1.5, -2, true, [], {}]) {
    const reply = db.runCommand({find: coll.getName(), filter: {v: {$type: type}}});
    assert.commandFailedWithCode(reply, [ErrorCodes.BadValue, ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch], () => tojson(type));
}
