/**
 * Conversions between types either succeed exactly or fail with the reason.
 * Fails when a conversion rounds, wraps or guesses, null is converted, or onError and onNull are not heeded.
 */
function evaluate(expression) {
    const doc = db.aggregate([{$documents: [{s: "42", n: null, d: 3.9, t: true, at: new Date(5), id: ObjectId("65a1b2c3d4e5f60718293a4b")}]},
                              {$project: {v: expression, t: {$type: expression}}}]).toArray()[0];
    return [doc.t, doc.v];
}
assert.eq(["int", 42], evaluate({$toInt: "$s"}));
assert.eq(["int", 3], evaluate({$toInt: "$d"}));
assert.eq(["int", -3], evaluate({$toInt: -3.9}));
assert.eq(["int", 1], evaluate({$toInt: "$t"}));
assert.eq(["long", NumberLong(42)], evaluate({$toLong: "$s"}));
assert.eq(["long", NumberLong(5)], evaluate({$toLong: "$at"}));
assert.eq(["double", -5.5], evaluate({$toDouble: "-5.5"}));
assert.eq(["double", 1e10], evaluate({$toDouble: "1e10"}));
assert.eq(["decimal", NumberDecimal("0.1")], evaluate({$toDecimal: "0.1"}));
assert.eq(["bool", true], evaluate({$toBool: "false"}));
assert.eq(["bool", false], evaluate({$toBool: 0}));
assert.eq(["string", "true"], evaluate({$toString: "$t"}));
assert.eq(["string", "3.9"], evaluate({$toString: "$d"}));
assert.eq(["string", "65a1b2c3d4e5f60718293a4b"], evaluate({$toString: "$id"}));
assert.eq(["string", "1970-01-01T00:00:00.005Z"], evaluate({$toString: "$at"}));
assert.eq(["date", ISODate("2024-01-12T21:44:35Z")], evaluate({$toDate: "$id"}));
assert.eq(["date", new Date(1500)], evaluate({$toDate: NumberLong(1500)}));
assert.eq(["date", ISODate("2020-05-06T07:08:09Z")], evaluate({$toDate: "2020-05-06T07:08:09Z"}));
assert.eq(["objectId", ObjectId("65a1b2c3d4e5f60718293a4b")], evaluate({$toObjectId: "65a1b2c3d4e5f60718293a4b"}));
for (const operator of ["$toInt", "$toLong", "$toDouble", "$toDecimal", "$toBool", "$toString", "$toDate", "$toObjectId"]) {
    assert.eq(["null", null], evaluate({[operator]: "$n"}), operator);
    assert.eq(["null", null], evaluate({[operator]: "$missing"}), operator);
}
assert.eq(["string", "bad"], evaluate({$convert: {input: "x", to: "int", onError: "bad"}}));
assert.eq(["string", "nothing"], evaluate({$convert: {input: "$n", to: "int", onNull: "nothing"}}));
assert.eq(["int", 42], evaluate({$convert: {input: "$s", to: 16}}));
assert.eq(["string", "missing"], evaluate({$type: "$missing"}));
assert.eq([true, false], [evaluate({$isNumber: "$d"})[1], evaluate({$isNumber: "$s"})[1]]);
assert.eq(2, evaluate({$binarySize: "$s"})[1]);
assert.eq(Object.bsonsize({a: 1}), evaluate({$bsonSize: {a: {$literal: 1}}})[1]);

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{s: "s", a: [1], d: 1e300}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
for (const expression of [{$toInt: "$s"}, {$toInt: "$a"}, {$toInt: "$d"}, {$toInt: "1.5"}, {$toInt: " 1"}, {$toInt: NumberLong("3000000000")}, {$toLong: 1e19}, {$toDouble: "0x1p"},
                          {$toDate: "$s"}, {$toDate: true}, {$toObjectId: "xyz"}, {$toInt: NaN}, {$toString: "$a"}, {$convert: {input: "x", to: "double"}}]) {
    refused(ErrorCodes.ConversionFailure, expression);
}
refused(ErrorCodes.BadValue, {$convert: {input: 1, to: "unheardOf"}});
refused([ErrorCodes.FailedToParse, ErrorCodes.BadValue, 40414], {$convert: {input: 1}});
refused([ErrorCodes.FailedToParse, ErrorCodes.BadValue, 40415], {$convert: {input: 1, to: "int", unheardOf: 1}});
// A target that is described has a type, and a subtype that is given is one.
refused(ErrorCodes.FailedToParse, {$convert: {input: 1, to: {type: null}}});
refused(4341108, {$convert: {input: 1, to: {type: "binData", subtype: null}}});
// A date stands between plain spaces alone.
refused(ErrorCodes.ConversionFailure, {$toDate: "\u20002024-06-15T12:30:45Z"});
