//! Which numbers become which BSON types, and back.

use super::passes;

#[test]
fn a_number_is_a_double_unless_it_came_as_int32_and_still_is_one() {
    passes(
        r#"
        const isInt = (o) => bsonBinaryEqual({v: o.v}, {v: 1}) ? "?" : Object.bsonsize(o);
        const size = (o) => Object.bsonsize(o);
        const came = bsonObjToArray({o: {v: NumberInt(5)}})[0];
        same(typeof came.v, "number");
        same(size({v: 5}), 16);
        same(size(came), 12);
        came.v = 6;
        same(size(came), 12);
        came.v = 6.5;
        same(size(came), 16);
        came.v = 4294967296;
        same(size(came), 16);
        came.v = -0;
        same(size(came), 16);
        came.v = 7;
        came.w = 7;
        same(size(came), 12 + 11);
        same(size({v: came.v}), 16);
        "#,
    );
}

#[test]
fn int32s_within_arrays_stay_int32() {
    passes(
        r#"
        const list = bsonObjToArray({a: [NumberInt(1), 2]})[0];
        same(bsonBinaryEqual({a: list}, {a: [NumberInt(1), 2]}), true);
        list.push(3);
        same(bsonBinaryEqual({a: list}, {a: [NumberInt(1), 2, 3]}), true);
        same(Object.keys(list).join(), "0,1,2");
        "#,
    );
}

#[test]
fn longs_are_exact_and_show_their_halves() {
    passes(
        r#"
        const max = NumberLong("9223372036854775807");
        same(max.toString(), 'NumberLong("9223372036854775807")');
        same(NumberLong(2147483647).toString(), "NumberLong(2147483647)");
        same(NumberLong(-2147483647).toString(), "NumberLong(-2147483647)");
        same(NumberLong(2147483648).toString(), 'NumberLong("2147483648")');
        same(max.top, 2147483647);
        same(max.bottom, 4294967295);
        same(max.floatApprox, 9223372036854775807);
        same(max.toNumber(), 2 ** 63);
        same(NumberLong(0, 2147483647, 4294967295).compare(max), 0);
        same(NumberLong(1).compare(max), -1);
        same(NumberLong(NumberLong("11111111111111111")).toString(), 'NumberLong("11111111111111111")');
        same(NumberLong(NumberInt(3)) + 1, 4);
        same(NumberLong(5) == 5, true);
        same(NumberLong(1e300).toString(), max.toString());
        same(JSON.stringify(max), '{"$numberLong":"9223372036854775807"}');
        same(bsonObjToArray({l: NumberLong(4)})[0] instanceof NumberLong, true);
        "#,
    );
}

#[test]
fn ints_and_decimals_keep_their_type() {
    passes(
        r#"
        same(NumberInt(5).toString(), "NumberInt(5)");
        same(NumberInt(5) + 1, 6);
        same(NumberInt("12").toNumber(), 12);
        same(Object.bsonsize({a: NumberInt(5)}), 12);
        same(NumberDecimal("1.10").toString(), 'NumberDecimal("1.10")');
        same(NumberDecimal(0.1).toString(), 'NumberDecimal("0.100000000000000")');
        same(NumberDecimal("-Infinity").toString(), 'NumberDecimal("-Infinity")');
        same(NumberDecimal().toString(), 'NumberDecimal("0")');
        same(JSON.stringify(NumberDecimal("2")), '{"$numberDecimal":"2"}');
        same(numberDecimalsEqual(NumberDecimal("1.0"), NumberDecimal("1.00")), true);
        same(numberDecimalsEqual(NumberDecimal("1.0"), NumberDecimal("1.01")), false);
        same(numberDecimalsAlmostEqual(NumberDecimal("1.00000000001"), NumberDecimal("1")), true);
        same(numberDecimalsAlmostEqual(NumberDecimal("1.001"), NumberDecimal("1")), false);
        same(numberDecimalsAlmostEqual(NumberDecimal("1.001"), NumberDecimal("1"), 2), true);
        "#,
    );
}

#[test]
fn values_that_no_double_holds_compare_exactly() {
    passes(
        r#"
        same(bsonWoCompare({a: NumberLong("9007199254740993")}, {a: 9007199254740992}), 1);
        same(bsonWoCompare({a: NumberDecimal("0.1")}, {a: 0.1}), -1);
        same(bsonWoCompare({a: NumberInt(1)}, {a: NumberDecimal("1.0")}), 0);
        "#,
    );
}
