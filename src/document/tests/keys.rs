//! Keys compare as bytes the way their values compare.

use super::generate::{number, value};
use crate::compare::{compare, compare_values};
use crate::key_string::{append_value, component_length, encode};
use crate::{Decimal128, Value, ValueRef, array, doc};
use proptest::prelude::*;
use std::cmp::Ordering;

fn key(v: &Value, descending: bool) -> Vec<u8> {
    let mut out = Vec::new();
    append_value(&mut out, v, descending);
    out
}

/// The exact decimal expansion, which orders numbers without any code of this crate: (rank, sign, whole, fraction).
fn expansion(v: &Value) -> Option<(i8, String, String)> {
    let (negative, text) = match v {
        Value::Int32(n) => (*n < 0, n.unsigned_abs().to_string()),
        Value::Int64(n) => (*n < 0, n.unsigned_abs().to_string()),
        Value::Double(n) if n.is_finite() => (*n < 0.0, format!("{:.1080}", n.abs())),
        Value::Decimal128(d) if d.is_finite() => {
            let crate::decimal::Parts::Finite { negative, coefficient, exponent } = d.parts() else {
                return None;
            };
            let digits = coefficient.to_string();
            let zeros = "0".repeat(exponent.unsigned_abs() as usize);
            let text = match exponent >= 0 {
                true => digits + &zeros,
                false => {
                    let padded = zeros + &digits;
                    let point = padded.len() - exponent.unsigned_abs() as usize;
                    format!("{}.{}", &padded[..point], &padded[point..])
                }
            };
            (negative, text)
        }
        _ => return None,
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let sign = match (whole.is_empty() && fraction.is_empty(), negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    Some((sign, whole.to_string(), fraction.to_string()))
}

fn expected(a: &Value, b: &Value) -> Option<Ordering> {
    let (a, b) = (expansion(a)?, expansion(b)?);
    let magnitude = (a.1.len(), &a.1, &a.2).cmp(&(b.1.len(), &b.1, &b.2));
    let within = if a.0 < 0 { magnitude.reverse() } else { magnitude };
    Some(a.0.cmp(&b.0).then(within))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn keys_order_as_values_compare(a in value(), b in value()) {
        let order = compare_values(&a, &b);
        prop_assert_eq!(key(&a, false).cmp(&key(&b, false)), order);
        prop_assert_eq!(key(&a, true).cmp(&key(&b, true)), order.reverse());
        let (ha, hb) = (a.to_holder(), b.to_holder());
        prop_assert_eq!(compare(ha.get("").unwrap(), hb.get("").unwrap()), order);
    }

    #[test]
    fn numbers_compare_by_exact_value(a in number(), b in number()) {
        let order = compare_values(&a, &b);
        if let Some(exact) = expected(&a, &b) {
            prop_assert_eq!(order, exact, "{:?} {:?}", a, b);
        }
        prop_assert_eq!(key(&a, false).cmp(&key(&b, false)), order, "{:?} {:?}", a, b);
        prop_assert_eq!(key(&a, true).cmp(&key(&b, true)), order.reverse());
        prop_assert_eq!(compare_values(&b, &a), order.reverse());
    }

    /// Decimals within a hair of a double, which share its first nine key bytes or those of the next one.
    #[test]
    fn decimals_beside_a_double_keep_their_side(bits in any::<u64>(), small in any::<bool>(), by in -2i128..3) {
        let near = if small { (bits % 4_000_000_000_000) as f64 / 1024.0 } else { f64::from_bits(bits >> 1) };
        prop_assume!(near.is_finite());
        let Some(crate::decimal::Parts::Finite { coefficient, exponent, .. }) =
            Decimal128::parse(&format!("{near:.33e}")).map(Decimal128::parts) else { return Ok(()) };
        prop_assume!((3..10i128.pow(34) - 3).contains(&(coefficient as i128)));
        let beside = Decimal128::from_parts(false, (coefficient as i128 + by) as u128, exponent);
        let other = Decimal128::from_parts(false, (coefficient as i128 - by) as u128, exponent);
        let values = [Value::Double(near), Value::from(beside), Value::from(other), Value::Double(near.next_up())];
        for a in &values {
            for b in &values {
                let exact = expected(a, b).unwrap();
                prop_assert_eq!(compare_values(a, b), exact, "{:?} {:?}", a, b);
                prop_assert_eq!(key(a, false).cmp(&key(b, false)), exact, "{:?} {:?}", a, b);
                let (na, nb) = (crate::number::negate(a).unwrap(), crate::number::negate(b).unwrap());
                prop_assert_eq!(key(&na, false).cmp(&key(&nb, false)), exact.reverse(), "{:?} {:?}", na, nb);
            }
        }
    }

    #[test]
    fn components_follow_each_other_without_ambiguity(
        a in (value(), value()), b in (value(), value()), descending in any::<(bool, bool)>(), tail in any::<(u64, u64)>()
    ) {
        let signed = |o: Ordering, d: bool| if d { o.reverse() } else { o };
        let compound = |v: &(Value, Value), tail: u64| {
            let mut out = key(&v.0, descending.0);
            append_value(&mut out, &v.1, descending.1);
            out.extend_from_slice(&tail.to_be_bytes());
            out
        };
        let order = signed(compare_values(&a.0, &b.0), descending.0)
            .then(signed(compare_values(&a.1, &b.1), descending.1))
            .then(tail.0.cmp(&tail.1));
        let (ka, kb) = (compound(&a, tail.0), compound(&b, tail.1));
        prop_assert_eq!(ka.cmp(&kb), order);
        let first = component_length(&ka, descending.0);
        prop_assert_eq!(first, Some(key(&a.0, descending.0).len()));
        prop_assert_eq!(component_length(&ka[first.unwrap()..], descending.1), Some(ka.len() - first.unwrap() - 8));
    }

    #[test]
    fn lengths_of_arbitrary_bytes_are_refused_or_within_them(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Some(n) = component_length(&bytes, false) {
            prop_assert!(n <= bytes.len());
        }
    }
}

#[test]
fn equal_numbers_of_different_types_have_equal_keys() {
    let d = |s| Value::Decimal128(Decimal128::parse(s).unwrap());
    let groups: Vec<Vec<Value>> = vec![
        vec![0.into(), 0i64.into(), 0.0.into(), (-0.0).into(), d("0"), d("-0E+10")],
        vec![1.into(), 1i64.into(), 1.0.into(), d("1"), d("1.000"), d("10E-1")],
        vec![1.5.into(), d("1.5"), d("1.50")],
        vec![(1i64 << 53).into(), 9007199254740992.0.into(), d("9007199254740992")],
        vec![i64::MIN.into(), (-9223372036854775808.0).into(), d("-9223372036854775808")],
        vec![1e30.into(), d("1000000000000000019884624838656")],
        vec![f64::NAN.into(), d("NaN"), (-f64::NAN).into()],
        vec![f64::INFINITY.into(), d("Infinity")],
    ];
    for group in groups {
        for v in &group {
            assert_eq!(key(v, false), key(&group[0], false), "{v:?} {:?}", group[0]);
        }
    }
}

#[test]
fn nan_is_the_lowest_number_and_types_keep_their_ranks() {
    let ordered = [
        Value::MinKey,
        Value::Undefined,
        Value::Null,
        Value::Double(f64::NAN),
        Value::Double(f64::NEG_INFINITY),
        Value::Int32(0),
        "".into(),
        doc! {}.into(),
        array![],
        Value::Binary(crate::Binary { subtype: 0, bytes: vec![] }),
        crate::ObjectId([0; 12]).into(),
        false.into(),
        true.into(),
        Value::DateTime(i64::MIN),
        crate::Timestamp::new(0, 0).into(),
        crate::Regex { pattern: String::new(), options: String::new() }.into(),
        crate::DbPointer { ns: String::new(), id: crate::ObjectId([0; 12]) }.into(),
        Value::JavaScript(String::new()),
        crate::CodeWithScope { code: String::new(), scope: doc! {} }.into(),
        Value::MaxKey,
    ];
    for pair in ordered.windows(2) {
        assert_eq!(compare_values(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        assert!(key(&pair[0], false) < key(&pair[1], false), "{pair:?}");
    }
}

#[test]
fn common_keys_are_short() {
    assert_eq!(key(&Value::Int32(100), false).len(), 2);
    assert_eq!(key(&Value::Int64(30_000), false).len(), 3);
    assert_eq!(key(&"name".into(), false).len(), 6);
    assert_eq!(key(&crate::ObjectId([7; 12]).into(), false).len(), 13);
}

#[test]
fn keys_on_disk_do_not_change() {
    let values = [ValueRef::Int32(1), ValueRef::Double(-1.5), ValueRef::String("a"), ValueRef::Null];
    let hex: String = encode(&values, &[false, false, true]).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "2a0228fcc007ffffffffffffffc39eff14");
}
