//! Decimal numbers: text, arithmetic, order.

use super::generate::decimal;
use crate::decimal::Parts;
use crate::{Decimal128, Value, number};
use proptest::prelude::*;

fn d(s: &str) -> Decimal128 {
    Decimal128::parse(s).unwrap_or_else(|| panic!("{s}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn text_reads_back_as_the_same_decimal(x in decimal()) {
        let again = d(&x.to_string());
        prop_assert_eq!(x.parts(), again.parts());
    }

    #[test]
    fn the_arithmetic_library_reads_our_encoding(a in -1_000_000_000i64..1_000_000_000, b in -1_000_000_000i64..1_000_000_000) {
        let (x, y) = (Decimal128::from_i64(a), Decimal128::from_i64(b));
        prop_assert_eq!(x.plus(y).to_i64_exact(), Some(a + b));
        prop_assert_eq!(x.minus(y).to_i64_exact(), Some(a - b));
        prop_assert_eq!(x.times(y).to_i64_exact(), Some(a * b));
        if b != 0 {
            prop_assert_eq!(x.remainder(y).to_i64_exact(), Some(a % b));
        }
    }

    #[test]
    fn doubles_convert_to_fifteen_digits(v in any::<f64>()) {
        let back = Decimal128::from_f64(v).to_f64();
        prop_assert!((back - v).abs() <= v.abs() * 1e-14 || v.abs() < 1e-290);
    }
}

#[test]
fn text_follows_the_specification() {
    let same = [
        "0",
        "-0",
        "0.1",
        "0.1234567890123456789012345678901234",
        "1.000000000000000000000000000000000E+6144",
        "1E-6176",
        "-1.00E-8",
        "12345678901234567",
        "0.000001234567",
        "1.234567E-7",
        "1E+3",
        "NaN",
        "Infinity",
        "-Infinity",
        "0E+3",
        "0.00",
        "0E-6176",
    ];
    for s in same {
        assert_eq!(d(s).to_string(), s);
    }
    let equal = [
        ("+1", "1"),
        ("1e3", "1E+3"),
        (".5", "0.5"),
        ("5.", "5"),
        ("00012", "12"),
        ("inf", "Infinity"),
        ("-nan", "NaN"),
        ("10E+6144", "Infinity"),
        ("1E+6112", "1.0E+6112"),
        ("1E-6177", "0E-6176"),
        ("6E-6177", "1E-6176"),
        ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
        ("12345678901234567890123456789012355", "1.234567890123456789012345678901236E+34"),
        ("99999999999999999999999999999999999", "1.000000000000000000000000000000000E+35"),
    ];
    for (given, text) in equal {
        assert_eq!(d(given).to_string(), text, "{given}");
    }
    for bad in ["", "-", ".", "1.2.3", "1e", "1e+", "e5", "0x1", "1 ", " 1", "E02", "1\0", "ı"] {
        assert_eq!(Decimal128::parse(bad), None, "{bad}");
    }
}

/// Cases published with the real server's tests.
#[test]
fn doubles_become_fifteen_digits_with_their_zeros() {
    let cases = [
        (0.1 / 10.0, "0.0100000000000000"),
        (1.0, "1.00000000000000"),
        (-1.0, "-1.00000000000000"),
        (0.0127, "0.0127000000000000"),
        (1234567890.12709, "1234567890.12709"),
        (724.879972565158, "724.879972565158"),
        (-0.09645061728395, "-0.0964506172839500"),
        (2f64.powi(1000), "1.07150860718627E+301"),
        (f64::MIN, "-1.79769313486232E+308"),
        (f64::MIN_POSITIVE, "2.22507385850720E-308"),
        (0.0, "0"),
        (-0.0, "-0"),
    ];
    for (double, text) in cases {
        assert_eq!(Decimal128::from_f64(double).to_string(), text);
    }
}

#[test]
fn coefficients_that_are_too_large_count_as_zero() {
    let large = Decimal128((6176u128 << 113 | 10u128.pow(34)).to_le_bytes());
    assert!(large.is_zero());
    assert_eq!(
        Decimal128((3u128 << 125).to_le_bytes()).parts(),
        Parts::Finite { negative: false, coefficient: 0, exponent: -6176 }
    );
}

#[test]
fn division_and_functions_round_half_even() {
    assert_eq!(d("1").over(d("3")).to_string(), "0.3333333333333333333333333333333333");
    assert_eq!(d("2").square_root().to_string(), "1.414213562373095048801688724209698");
    assert_eq!(d("2.5").round().to_string(), "2");
    assert_eq!(d("1").exp().to_string(), "2.718281828459045235360287471352662");
}

#[test]
fn arithmetic_promotes_as_the_server_does() {
    let long = |n: i64| Value::Int64(n);
    assert_eq!(number::add(&Value::Int32(1), &Value::Int32(2)), Some(Value::Int32(3)));
    assert_eq!(number::add(&Value::Int32(i32::MAX), &Value::Int32(1)), Some(long(1 << 31)));
    assert_eq!(number::add(&long(1), &Value::Int32(2)), Some(long(3)));
    assert_eq!(number::add(&long(i64::MAX), &Value::Int32(1)), Some(Value::Double(9223372036854775808.0)));
    assert_eq!(number::add_exact(&long(i64::MAX), &Value::Int32(1)), None);
    assert_eq!(number::add(&Value::Double(0.5), &long(1)), Some(Value::Double(1.5)));
    assert_eq!(
        number::add(&Value::Decimal128(d("0.1")), &Value::Int32(1)),
        Some(Value::Decimal128(d("1.1")))
    );
    assert_eq!(number::add(&"x".into(), &Value::Int32(1)), None);
    assert_eq!(number::multiply_exact(&Value::Int32(i32::MAX), &Value::Int32(2)), Some(long(4294967294)));
    assert_eq!(number::divide(&Value::Int32(1), &Value::Int32(2)), Some(Value::Double(0.5)));
    assert_eq!(number::divide(&Value::Int32(1), &Value::Int32(0)), None);
    assert_eq!(number::modulo(&Value::Int32(-7), &Value::Int32(3)), Some(Value::Int32(-1)));
    assert_eq!(number::modulo(&long(i64::MIN), &Value::Int32(-1)), Some(long(0)));
    assert_eq!(number::negate(&Value::Int32(i32::MIN)), Some(long(1 << 31)));
    assert_eq!(number::absolute(&long(i64::MIN)), None);
    assert_eq!(number::to_i64_exact(&Value::Double(9223372036854775808.0)), None);
    assert_eq!(number::to_i64_exact(&Value::Decimal128(d("120E-1"))), Some(12));
}
