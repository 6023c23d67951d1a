//! Trigonometric functions: of doubles, and of decimals through doubles.

use super::arithmetic::{through_f64, unary};
use super::{Arg, Eval, is_nullish, type_name};
use document::{Value, bail, number};

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

fn apply(name: &str, a: &mut Arg, domain: Domain, f: fn(f64) -> f64) -> Eval {
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
        through_f64(&v, f)
    })
}

macro_rules! functions {
    ($($name:ident $text:literal $domain:expr, $f:expr;)*) => {
        $(pub fn $name(args: &mut [Arg]) -> Eval { apply($text, &mut args[0], $domain, $f) })*
    };
}
functions! {
    sin "$sin" FINITE, f64::sin;
    cos "$cos" FINITE, f64::cos;
    tan "$tan" FINITE, f64::tan;
    asin "$asin" UNIT, f64::asin;
    acos "$acos" UNIT, f64::acos;
    atan "$atan" ALL, f64::atan;
    sinh "$sinh" ALL, f64::sinh;
    cosh "$cosh" ALL, f64::cosh;
    tanh "$tanh" ALL, f64::tanh;
    asinh "$asinh" ALL, f64::asinh;
    acosh "$acosh" Domain { least: 1.0, greatest: f64::INFINITY, open: false }, f64::acosh;
    atanh "$atanh" UNIT, f64::atanh;
    degrees_to_radians "$degreesToRadians" ALL, |x| x * (std::f64::consts::PI / 180.0);
    radians_to_degrees "$radiansToDegrees" ALL, |x| x * (180.0 / std::f64::consts::PI);
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
    let (a, b) = (number::as_f64(y).unwrap_or(f64::NAN), number::as_f64(x).unwrap_or(f64::NAN));
    let carrier = if matches!(x, Value::Decimal128(_)) { x } else { y };
    through_f64(carrier, |_| a.atan2(b)).map(Some)
}
