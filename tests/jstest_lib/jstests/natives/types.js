// BSON types: constructors, what instances answer, comparison. MinKey and MaxKey are values as well as functions, so no wrapper stands for them.
Natives.watch("NumberLong", "NumberInt", "NumberDecimal", "ObjectId", "Timestamp", "BinData", "UUID", "MD5", "HexData", "DBRef",
              "DBPointer", "Code", "MongoURI", "bsonWoCompare", "bsonUnorderedFieldsCompare", "bsonBinaryEqual", "bsonObjToArray", "Object.bsonsize",
              "tostrictjson", "numberDecimalsEqual", "numberDecimalsAlmostEqual", "_buildBsonObj", "_decimal128Limit",
              "_resultSetsEqualNormalized", "_resultSetsEqualUnordered", "convertShardKeyToHashed", "_compareStringsWithCollation", "decodeResumeToken");
const long = NumberLong("9007199254740993");
assert.eq("9007199254740993", long.exactValueString());
assert.eq(9007199254740992, long.toNumber());
assert.eq(1, long.compare(NumberLong(3)));
assert.eq([2097152, 1], [long.top, long.bottom].map(Number));
assert.eq(9007199254740992, long.floatApprox);
assert.eq(3, new NumberInt(3).toNumber());
assert.eq('NumberDecimal("1.50")', tojson(NumberDecimal("1.50")));
assert(numberDecimalsEqual(NumberDecimal("1.5"), NumberDecimal("1.50")));
assert(numberDecimalsAlmostEqual(NumberDecimal("1.0000000001"), NumberDecimal("1"), 5));
assert(NumberDecimal(_decimal128Limit("+Max").toString().slice(15, -2)) !== undefined);
const id = ObjectId("5f0000000123456789abcdef");
assert.eq("5f0000000123456789abcdef", id.str);
assert.eq(0x5f000000 * 1000, id.getTimestamp().getTime());
assert(ObjectId().str !== ObjectId().str);
assert.eq([5, 6], [Timestamp(5, 6).t, Timestamp(5, 6).i]);
const data = BinData(5, "AQID");
assert.eq([5, 3, "AQID", "010203"], [data.type, data.len, data.base64(), data.hex()].map((v) => (typeof v === "object" ? Number(v) : v)));
assert.eq(4, UUID().subtype());
assert.eq(0, bsonWoCompare({a: UUID("00112233-4455-6677-8899-aabbccddeeff")}, {a: HexData(4, "00112233445566778899aabbccddeeff")}));
assert.eq(5, MD5("900150983cd24fb0d6963f7d28e17f72").subtype());
assert(bsonWoCompare({a: MinKey}, {a: 1}) < 0 && bsonWoCompare({a: MaxKey()}, {a: "z"}) > 0 && bsonWoCompare({a: MinKey()}, {a: MinKey}) === 0);
const ref = DBRef("c", id, "d");
assert.eq(["c", "d"], [ref.$ref, ref.$db]);
assert(DBPointer("d.c", id) instanceof DBPointer);
assert.eq("return 1", Code("return 1").code);
const uri = new MongoURI("mongodb://a:1,b:2/test?replicaSet=s");
assert.eq(["s", "test", 2], [uri.setName, uri.database, uri.servers.length]);

assert.eq(-1, Math.sign(bsonWoCompare({a: 1}, {a: 2})));
assert.eq(0, bsonWoCompare({a: 1}, {a: NumberLong(1)}));
assert(bsonWoCompare({a: 1, b: 1}, {b: 1, a: 1}) !== 0);
assert.eq(0, bsonUnorderedFieldsCompare({a: 1, b: 1}, {b: 1, a: 1}));
assert(bsonBinaryEqual({a: 1}, {a: 1}) && !bsonBinaryEqual({a: 1}, {a: NumberLong(1)}));
assert.eq([1, "x"], bsonObjToArray({a: 1, b: "x"}));
assert.eq(16, Object.bsonsize({a: 1}), "a number is a double");
assert.eq(12, Object.bsonsize({a: NumberInt(1)}));
const strict = tostrictjson({a: "x", b: id});
assert.eq({a: "x", b: {$oid: id.str}}, JSON.parse(strict));
assert.eq({a: 1, b: "x"}, _buildBsonObj("a", 1, "b", "x"));
const collated = (collation) => _compareStringsWithCollation("abc", "ABD", collation);
assert.eq([1, -1], [collated({locale: "simple"}), collated({locale: "en"})]);
assert.eq([1, 0], [2, 1].map((strength) => _compareStringsWithCollation("r\u00e9sum\u00e9", "Resume", {locale: "en", strength})));
assert.throws(() => _compareStringsWithCollation("a", "b", {locale: "nowhere"}));
// The token of an event, as the documentation of a public decoder shows it.
const token = decodeResumeToken({_data: "82612E8513000000012B022C0100296E5A1004A5093ABB38FE4B9EA67F01BB1A96D812463C5F6964003C5F5F5F78000004"});
assert.eq([eventResumeTokenType, Timestamp(1630438675, 1), {_id: "___x"}], [token.tokenType, token.clusterTime, token.eventIdentifier]);
assert.eq(highWaterMarkResumeTokenType, decodeResumeToken({_data: "82612E8513000000012B0429296E1404"}).tokenType);
assert(_resultSetsEqualUnordered([{a: 1}, {a: 2}], [{a: 2}, {a: 1}]));
assert(!_resultSetsEqualUnordered([{a: 1}], [{a: 2}]));
assert(_resultSetsEqualNormalized([{a: 1, b: NumberLong(2)}], [{b: 2, a: 1}]));
assert(convertShardKeyToHashed(5) instanceof NumberLong);
assert.eq(convertShardKeyToHashed(NumberInt(5)), convertShardKeyToHashed(5));
Natives.refused("decompressBSONColumn", () => decompressBSONColumn(HexData(7, "00"), false));
Natives.done();
