/**
 * Whatever type a client stores it gets back, as the same bytes.
 * Fails when a type, a subtype, an option of a pattern or the order of fields is lost on its way through storage, an index or a pipeline.
 */
const coll = db.stored_types_round_trip;
coll.drop();
const values = {
    double: -0.5,
    string: "text with \u0000 within",
    object: {z: 1, a: {b: []}},
    array: [1, [2, {c: 3}], null],
    binary: BinData(0, "AAECAw=="),
    uuid: UUID("01234567-89ab-cdef-0123-456789abcdef"),
    user: BinData(128, "/w=="),
    objectId: ObjectId("65a1b2c3d4e5f60718293a4b"),
    bool: false,
    date: new Date(-5),
    nothing: null,
    regex: /a\/b/im,
    ref: DBRef("other", 5),
    code: Code("function() { return 1; }"),
    int: NumberInt(-7),
    timestamp: Timestamp(7, 8),
    long: NumberLong("-9223372036854775808"),
    decimal: NumberDecimal("-1.50E+10"),
    minKey: MinKey,
    maxKey: MaxKey,
    emptyString: "",
    emptyObject: {},
    emptyArray: [],
    infinity: -Infinity,
};
const doc = Object.assign({_id: 1}, values);
assert.commandWorked(coll.insert(doc));
assert.eq(Object.keys(doc), Object.keys(coll.findOne()));
// The shell reads a 32-bit integer as a number, which it writes as a double unless the document stays as it came.
const written = Object.entries(values).filter(([name]) => name != "int");
for (const [name, value] of written) {
    const stored = coll.findOne();
    assert(bsonBinaryEqual({v: value}, {v: stored[name]}), () => name + ": " + tojson(stored[name]));
    assert.eq(Object.bsonsize({v: value}), Object.bsonsize({v: stored[name]}), name);
}

// Back in under another _id, what was read is what was stored.
const read = coll.findOne();
read._id = 2;
assert.commandWorked(coll.insert(read));
assert.eq(2, coll.find({decimal: values.decimal, long: values.long, regex: values.regex, code: values.code}).itcount());
assert.eq(2, coll.find({int: {$type: "int"}}).itcount());
assert(bsonBinaryEqual(coll.findOne({_id: 1}, {_id: 0}), coll.findOne({_id: 2}, {_id: 0})));

// Through a pipeline.
const copied = coll.aggregate([{$match: {_id: 1}}, {$project: Object.fromEntries(Object.keys(values).map(name => ["c_" + name, "$" + name]))}]).toArray()[0];
for (const [name, value] of written) {
    assert(bsonBinaryEqual({v: value}, {v: copied["c_" + name]}), () => name + ": " + tojson(copied["c_" + name]));
}
// And from the keys of an index.
for (const name of Object.keys(values).filter(name => !["array", "emptyArray", "code", "ref"].includes(name))) {
    assert.commandWorked(coll.createIndex({[name]: 1}));
    const key = coll.find({}, {_id: 0, [name]: 1}).hint({[name]: 1}).limit(1).toArray()[0];
    assert(bsonBinaryEqual({[name]: values[name]}, key), () => name + ": " + tojson(key));
    assert.commandWorked(coll.dropIndex({[name]: 1}));
}
