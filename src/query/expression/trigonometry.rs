//! Trigonometric functions: of doubles, and of decimals through doubles.

use super::arithmetic::{by_kind, unary};
use super::{Arg, Eval, is_nullish, type_name};
use document::{Decimal128, Value, bail, number};

/// One row for each function whose domain is an interval: name, function, least and greatest argument, which of
/// those are excluded.
struct Domain {
    least: f64,
    greatest: f64,
    open: bool,
}
const ALL: Domain = Domain { least: f64::NEG_INFINITY, greatest: f64::INFINITY, open: false };
/// All but the infinities.
const FINITE: Domain = Domain { least: f64::NEG_INFINITY, greatest: f64::INFINITY, open: true };
const UNIT: Domain = Domain { least: -1.0, greatest: 1.0, open: false };

fn apply(
    name: &str,
    a: &mut Arg,
    domain: Domain,
    f: fn(f64) -> f64,
    g: fn(Decimal128) -> Decimal128,
) -> Eval {
    unary(name, a, |v| {
        let x = number::as_f64(&v).unwrap_or(f64::NAN);
        let inside = if domain.open {
            x > domain.least && x < domain.greatest
        } else {
            x >= domain.least && x <= domain.greatest
        };
        if !x.is_nan() && !inside {
            let (open, close) = if domain.open { ('(', ')') } else { ('[', ']') };
            let bound = |b: f64| {
                if b.is_infinite() {
                    if b > 0.0 { "inf".into() } else { "-inf".to_string() }
                } else {
                    b.to_string()
                }
            };
            bail!(
                50989,
                "cannot apply {name} to {}, value must be in {open}{},{}{close}",
                super::parse::show(&v),
                bound(domain.least),
                bound(domain.greatest)
            );
        }
        by_kind(&v, f, g)
    })
}

macro_rules! functions {
    ($($name:ident $text:literal $domain:expr, $f:expr, $g:expr;)*) => {
        $(pub fn $name(args: &mut [Arg]) -> Eval { apply($text, &mut args[0], $domain, $f, $g) })*
    };
}
functions! {
    sin "$sin" FINITE, f64::sin, Decimal128::sin;
    cos "$cos" FINITE, f64::cos, Decimal128::cos;
    tan "$tan" FINITE, f64::tan, Decimal128::tan;
    asin "$asin" UNIT, f64::asin, Decimal128::asin;
    acos "$acos" UNIT, f64::acos, Decimal128::acos;
    atan "$atan" ALL, f64::atan, Decimal128::atan;
    sinh "$sinh" ALL, f64::sinh, Decimal128::sinh;
    cosh "$cosh" ALL, f64::cosh, Decimal128::cosh;
    tanh "$tanh" ALL, f64::tanh, Decimal128::tanh;
    asinh "$asinh" ALL, f64::asinh, Decimal128::asinh;
    acosh "$acosh" Domain { least: 1.0, greatest: f64::INFINITY, open: false }, f64::acosh, Decimal128::acosh;
    atanh "$atanh" UNIT, f64::atanh, Decimal128::atanh;
    degrees_to_radians "$degreesToRadians" ALL, |x| x * (std::f64::consts::PI / 180.0), |x| x.times(pi()).over(decimal(180));
    radians_to_degrees "$radiansToDegrees" ALL, |x| x * (180.0 / std::f64::consts::PI), |x| x.times(decimal(180)).over(pi());
}

fn decimal(i: i32) -> Decimal128 {
    number::to_decimal(&Value::Int32(i)).unwrap_or(Decimal128::NAN)
}
fn pi() -> Decimal128 {
    number::decimal_from_str("3.141592653589793238462643383279503").unwrap_or(Decimal128::NAN)
}

pub fn atan2(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return Ok(Some(Value::Null));
    }
    let (Some(y), Some(x)) = (&args[0], &args[1]) else { return Ok(Some(Value::Null)) };
    for v in [y, x] {
        if !v.is_number() {
            bail!(51044, "$atan2 only supports numeric types, not {}", type_name(&Some(v.clone())));
        }
    }
    if matches!(x, Value::Decimal128(_)) || matches!(y, Value::Decimal128(_)) {
        let (Some(y), Some(x)) = (number::to_decimal(y), number::to_decimal(x)) else {
            return Ok(Some(Value::Null));
        };
        return Ok(Some(Value::Decimal128(y.atan2(x))));
    }
    let (a, b) = (number::as_f64(y).unwrap_or(f64::NAN), number::as_f64(x).unwrap_or(f64::NAN));
    Ok(Some(Value::Double(a.atan2(b))))
}
