/**
 * Text of every BSON type as the legacy shell prints it: tests compare such texts and people paste them back. A printer
 * that lost a type's constructor, or broke lines elsewhere, would fail here.
 */
(function() {
"use strict";

function prints(value, text) {
    if (tojson(value) !== text) throw new Error("tojson gave\n" + tojson(value) + "\ninstead of\n" + text);
}

prints(1, "1");
prints(1.5, "1.5");
prints(1e21, "1e+21");
prints(NaN, "NaN");
prints(-Infinity, "-Infinity");
prints(true, "true");
prints(null, "null");
prints(undefined, "undefined");
prints("a\"b\\c\n\u0001", '"a\\"b\\\\c\\n\\u0001"');
prints("æøå", '"æøå"');
prints(ISODate("2020-02-03T04:05:06.007Z"), 'ISODate("2020-02-03T04:05:06.007Z")');
prints(ISODate("2020-02-03T04:05:06Z"), 'ISODate("2020-02-03T04:05:06Z")');
prints(new Date(-62198755200000), "new Date(-62198755200000)");
prints(/ab+c/i, "/ab+c/i");
prints(ObjectId("507f1f77bcf86cd799439011"), 'ObjectId("507f1f77bcf86cd799439011")');
prints(NumberLong(5), "NumberLong(5)");
prints(NumberLong("9223372036854775807"), 'NumberLong("9223372036854775807")');
prints(NumberInt(5), "NumberInt(5)");
prints(NumberDecimal("1.10"), 'NumberDecimal("1.10")');
prints(Timestamp(1, 2), "Timestamp(1, 2)");
prints(BinData(0, "AQID"), 'BinData(0,"AQID")');
prints(UUID("81fd5473-1747-4c9d-8743-f10642b3bb99"), 'UUID("81fd5473-1747-4c9d-8743-f10642b3bb99")');
prints(HexData(0, "010203"), 'BinData(0,"AQID")');
prints(MinKey, '{ "$minKey" : 1 }');
prints(MaxKey, '{ "$maxKey" : 1 }');
prints(DBRef("c", 1), 'DBRef("c", 1)');
prints(DBRef("c", 1, "d"), 'DBRef("c", 1, "d")');
prints(DBPointer("c", ObjectId("507f1f77bcf86cd799439011")), 'DBPointer("c", ObjectId("507f1f77bcf86cd799439011"))');
prints({f: function() { return 1; }}, '{ "f" : function() { return 1; } }');
prints(new Error("e"), "Error: e");

// Layout.
prints({}, "{ }");
prints([], "[ ]");
prints({a: 1}, '{ "a" : 1 }');
prints([1, "b", [2]], '[ 1, "b", [ 2 ] ]');
prints({a: {b: [1, 2]}, c: []}, '{ "a" : { "b" : [ 1, 2 ] }, "c" : [ ] }');
const long = {first: "x".repeat(40), second: "y".repeat(40), third: {fourth: [1, 2]}};
prints(long, '{\n\t"first" : "' + "x".repeat(40) + '",\n\t"second" : "' + "y".repeat(40) +
    '",\n\t"third" : {\n\t\t"fourth" : [\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t}\n}');
assert.eq('{ "a" : { "b" : [ 1 ] }, "c" : {  } }', tojsononeline({a: {b: [1]}, c: {}}));
assert.eq('{\n\t"a" : 1\n}', tojson({a: 1}, "", false));
assert.eq(-1, tojsononeline(long).indexOf("\n"));
assert.eq('{ "own" : "printer" }', tojson({tojson: () => '{ "own" : "printer" }'}));

assert.eq(['{ "a" : 1 }', "[ 2 ]"], [{a: 1}, [2]].map(tojson));

// The order of fields is the order of insertion.
prints({z: 1, a: 2}, '{ "z" : 1, "a" : 2 }');
assert.eq('{ "a" : 2, "z" : 1 }', tojson({z: 1, a: 2}, "", true, 0, true));

// Printing.
const printed = print.captureAllOutput(() => {
    printjson({a: 1});
    printjsononeline({a: {}});
    return 7;
});
assert.eq({output: ['{ "a" : 1 }', '{ "a" : {  } }'], result: 7}, printed);

// ISO dates in all their forms.
const expected = Date.UTC(2012, 10, 9, 8, 7, 6, 500);
for (const text of ["2012-11-09T08:07:06.5Z", "2012-11-09 08:07:06.500Z", "20121109T080706.5Z", "2012-11-09T10:07:06.5+02:00",
    "2012-11-09T06:37:06.5-0130", "2012-11-09T08:07:06.5"]) {
    assert.eq(expected, ISODate(text).getTime(), text);
}
assert.eq(Date.UTC(2012, 10, 9), ISODate("2012-11-09").getTime());
assert.eq(Date.UTC(2012, 10, 9), ISODate("20121109").getTime());
assert.eq(Date.UTC(2012, 10, 9, 8, 7), ISODate("2012-11-09T08:07Z").getTime());
assert.eq(1, ISODate("0001-01-01").getUTCFullYear());
assert.close(Date.now(), ISODate().getTime(), "now", 3);
for (const text of ["x", "2012", "2012-13-01", "2012-01-32", "2012-01-01T25:00:00", "2012-01-01T00:60"]) {
    assert.throws(() => ISODate(text), [], text);
}
})();
