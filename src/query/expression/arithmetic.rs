//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod` and the functions of one number.
//!
//! A nullish argument makes the result null, unless an argument before it is of a wrong type.

use super::number::{Sum, exact_i32};
use super::{Arg, Eval, is_nullish, type_name};
use document::{Decimal128, Error, Result, Value, bail, err, number};

fn null() -> Eval {
    Ok(Some(Value::Null))
}
fn done(v: Value) -> Eval {
    Ok(Some(v))
}
fn numeric(v: &Arg) -> bool {
    v.as_ref().is_some_and(Value::is_number)
}
fn is_decimal(v: &Value) -> bool {
    matches!(v, Value::Decimal128(_))
}

pub fn add(args: &mut [Arg]) -> Eval {
    let mut sum = Sum::with_short_doubles();
    let mut date = None;
    for a in args.iter() {
        match a {
            Some(Value::DateTime(_)) if date.is_some() => {
                bail!(16612, "only one date allowed in an $add expression")
            }
            Some(Value::DateTime(ms)) => date = Some(*ms),
            v if is_nullish(v) => return null(),
            Some(v) if sum.add(v) => {}
            v => bail!(TYPE_MISMATCH, "$add only supports numeric or date types, not {}", type_name(v)),
        }
    }
    match date {
        None => done(sum.result()),
        Some(ms) => done(Value::DateTime(shift_date(ms, &sum.result(), 1, "$add")?)),
    }
}

/// A date and a number of milliseconds, rounded to the nearest.
fn shift_date(ms: i64, by: &Value, sign: i128, name: &str) -> Result<i64> {
    let overflow = || err!(OVERFLOW, "date overflow in {name}");
    let by = match by {
        Value::Double(d) => {
            if !d.is_finite() {
                return Err(overflow());
            }
            d.round() as i128
        }
        Value::Decimal128(_) => {
            let d = number::as_f64(by).unwrap_or(f64::NAN);
            if !d.is_finite() || d.abs() > 1e19 {
                return Err(overflow());
            }
            number::to_i64_exact(by).map_or(d.round_ties_even() as i128, i128::from)
        }
        v => number::to_i64_exact(v).unwrap_or(0) as i128,
    };
    // A finite double can be as large as the widest integer, so the sum must not wrap before it is found too large.
    i64::try_from((ms as i128).saturating_add(by.saturating_mul(sign))).map_err(|_| overflow())
}

pub fn subtract(args: &mut [Arg]) -> Eval {
    let (a, b) = (&args[0], &args[1]);
    if is_nullish(a) || is_nullish(b) {
        return null();
    }
    if let (Some(a), Some(b)) = (a, b) {
        if let (Value::DateTime(x), Value::DateTime(y)) = (a, b) {
            return match x.checked_sub(*y) {
                Some(ms) => done(Value::Int64(ms)),
                None => bail!(OVERFLOW, "date overflow in $subtract"),
            };
        }
        if let (Value::DateTime(x), true) = (a, b.is_number()) {
            return done(Value::DateTime(shift_date(*x, b, -1, "$subtract")?));
        }
        if let Some(v) = number::subtract(a, b) {
            return done(v);
        }
    }
    bail!(TYPE_MISMATCH, "can't $subtract {} from {}", type_name(b), type_name(a))
}

pub fn multiply(args: &mut [Arg]) -> Eval {
    let mut product = Value::Int32(1);
    for a in args.iter() {
        let Some(v) = a.as_ref().filter(|_| !is_nullish(a)) else { return null() };
        product = match number::multiply(&product, v) {
            Some(p) => p,
            None => bail!(TYPE_MISMATCH, "$multiply only supports numeric types, not {}", v.type_name()),
        };
    }
    done(product)
}

fn is_zero(v: &Value) -> bool {
    number::as_f64(v) == Some(0.0)
}

pub fn divide(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    if let (Some(a), Some(b)) = (&args[0], &args[1])
        && a.is_number()
        && b.is_number()
    {
        if is_zero(b) {
            bail!(BAD_VALUE, "can't $divide by zero");
        }
        return Ok(number::divide(a, b));
    }
    bail!(
        TYPE_MISMATCH,
        "$divide only supports numeric types, not {} and {}",
        type_name(&args[0]),
        type_name(&args[1])
    )
}

pub fn modulo(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    if let (Some(a), Some(b)) = (&args[0], &args[1])
        && a.is_number()
        && b.is_number()
    {
        if is_zero(b) {
            if is_decimal(a) || is_decimal(b) {
                bail!(5733415, "can't $mod by zero");
            }
            bail!(16610, "can't $mod by zero");
        }
        return Ok(number::modulo(a, b));
    }
    bail!(16611, "$mod only supports numeric types, not {} and {}", type_name(&args[0]), type_name(&args[1]))
}

/// The shell of a function of one number: null for nullish, 28765 for a non-number.
pub(super) fn unary(name: &str, a: &mut Arg, f: impl FnOnce(Value) -> Result<Value>) -> Eval {
    if is_nullish(a) {
        return null();
    }
    match a.take() {
        Some(v) if v.is_number() => Ok(Some(f(v)?)),
        v => bail!(28765, "{name} only supports numeric types, not {}", type_name(&v)),
    }
}

/// Applies a function in the number's own kind: of decimals to a decimal, of doubles to the rest.
pub(super) fn by_kind(v: &Value, f: fn(f64) -> f64, g: fn(Decimal128) -> Decimal128) -> Result<Value> {
    Ok(match v {
        Value::Decimal128(d) => Value::Decimal128(quiet(g(*d))),
        v => Value::Double(f(number::as_f64(v).unwrap_or(f64::NAN))),
    })
}

/// NaN has one form, whatever sign the library gave it.
fn quiet(d: Decimal128) -> Decimal128 {
    if d.is_nan() { Decimal128::NAN } else { d }
}

/// The decimal with as many digits as fit, as the reference shows powers.
fn padded(d: Decimal128) -> Decimal128 {
    let text = number::decimal_to_string(d);
    match split_decimal(&text) {
        None => quiet(d),
        Some(_) if d.is_zero() => number::decimal_from_str("0E-6176").unwrap_or(d),
        Some((_, digits, exponent)) => {
            let missing = 34 - digits.trim_start_matches('0').len() as i64;
            let unit = number::decimal_from_str(&format!("1E{}", exponent - missing));
            unit.map(|u| d.quantize(u)).filter(|q| !q.is_nan()).unwrap_or(d)
        }
    }
}

/// Whether the number is below (or, with `or_equal`, at) zero; exact for decimals too small for a double.
fn below_zero(v: &Value, or_equal: bool) -> bool {
    match v {
        Value::Decimal128(d) => !d.is_nan() && (d.is_negative() && !d.is_zero() || or_equal && d.is_zero()),
        v => number::as_f64(v).is_some_and(|x| x < 0.0 || or_equal && x == 0.0),
    }
}

pub fn abs(args: &mut [Arg]) -> Eval {
    unary("$abs", &mut args[0], |v| match v {
        Value::Int64(i64::MIN) => bail!(28680, "can't take $abs of long long min"),
        Value::Int32(i32::MIN) => Ok(Value::Int64(-(i32::MIN as i64))),
        v => number::absolute(&v).ok_or_else(|| Error::new(28765, "$abs only supports numeric types")),
    })
}

pub fn ceil(args: &mut [Arg]) -> Eval {
    unary("$ceil", &mut args[0], |v| match v {
        Value::Double(d) => Ok(Value::Double(d.ceil())),
        Value::Decimal128(_) => Ok(round_decimal(&v, 0, Rounding::Ceiling, true)),
        v => Ok(v),
    })
}

pub fn floor(args: &mut [Arg]) -> Eval {
    unary("$floor", &mut args[0], |v| match v {
        Value::Double(d) => Ok(Value::Double(d.floor())),
        Value::Decimal128(_) => Ok(round_decimal(&v, 0, Rounding::Floor, true)),
        v => Ok(v),
    })
}

pub fn exp(args: &mut [Arg]) -> Eval {
    unary("$exp", &mut args[0], |v| by_kind(&v, f64::exp, Decimal128::exp))
}

pub fn sqrt(args: &mut [Arg]) -> Eval {
    unary("$sqrt", &mut args[0], |v| {
        if below_zero(&v, false) {
            bail!(28714, "$sqrt's argument must be greater than or equal to 0");
        }
        by_kind(&v, f64::sqrt, Decimal128::square_root)
    })
}

pub fn ln(args: &mut [Arg]) -> Eval {
    unary("$ln", &mut args[0], |v| {
        if below_zero(&v, true) {
            bail!(28766, "$ln's argument must be a positive number, but is {}", text(&v));
        }
        logarithm(&v, f64::ln, Decimal128::ln)
    })
}

pub fn log10(args: &mut [Arg]) -> Eval {
    unary("$log10", &mut args[0], |v| {
        if below_zero(&v, true) {
            bail!(28761, "$log10's argument must be a positive number, but is {}", text(&v));
        }
        logarithm(&v, f64::log10, Decimal128::log10)
    })
}

/// A decimal NaN comes back as a double.
fn logarithm(v: &Value, f: fn(f64) -> f64, g: fn(Decimal128) -> Decimal128) -> Result<Value> {
    match v {
        Value::Decimal128(d) if d.is_nan() => Ok(Value::Double(f64::NAN)),
        v => by_kind(v, f, g),
    }
}

fn text(v: &Value) -> String {
    super::parse::show(v)
}

pub fn log(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    let (Some(a), Some(b)) = (&args[0], &args[1]) else { return null() };
    if !a.is_number() {
        bail!(28756, "$log's argument must be numeric, not {}", a.type_name());
    }
    if !b.is_number() {
        bail!(28757, "$log's base must be numeric, not {}", b.type_name());
    }
    let (x, base) = (number::as_f64(a).unwrap_or(0.0), number::as_f64(b).unwrap_or(0.0));
    if below_zero(a, true) {
        bail!(28758, "$log's argument must be a positive number, but is {}", text(a));
    }
    if below_zero(b, true) || base == 1.0 {
        bail!(28759, "$log's base must be a positive number not equal to 1, but is {}", text(b));
    }
    let is_nan = x.is_nan() || base.is_nan();
    if (is_decimal(a) || is_decimal(b))
        && !is_nan
        && let (Some(a), Some(b)) = (number::to_decimal(a), number::to_decimal(b))
    {
        return done(Value::Decimal128(quiet(a.ln().over(b.ln()))));
    }
    done(Value::Double(x.ln() / base.ln()))
}

pub fn pow(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    let (Some(a), Some(b)) = (&args[0], &args[1]) else { return null() };
    if !a.is_number() {
        bail!(28762, "$pow's base must be numeric, not {}", a.type_name());
    }
    if !b.is_number() {
        bail!(28763, "$pow's exponent must be numeric, not {}", b.type_name());
    }
    let (x, y) = (number::as_f64(a).unwrap_or(0.0), number::as_f64(b).unwrap_or(0.0));
    if x == 0.0 && y < 0.0 {
        bail!(28764, "$pow cannot take a base of 0 and a negative exponent");
    }
    if is_decimal(a) || is_decimal(b) {
        let (Some(a), Some(b)) = (number::to_decimal(a), number::to_decimal(b)) else { return null() };
        return done(Value::Decimal128(padded(a.power(b))));
    }
    if let (Some(base), Some(exponent)) = (integer(a), integer(b)) {
        let narrow = matches!((a, b), (Value::Int32(_), Value::Int32(_)));
        return done(integer_pow(base, exponent, narrow).unwrap_or(Value::Double(x.powf(y))));
    }
    done(Value::Double(x.powf(y)))
}

fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Int32(i) => Some(*i as i64),
        Value::Int64(i) => Some(*i),
        _ => None,
    }
}

/// The exact power, or `None` when only a double can hold it.
fn integer_pow(base: i64, exponent: i64, narrow: bool) -> Option<Value> {
    let wrap = |v: i64| if narrow { number::int_or_long(v) } else { Value::Int64(v) };
    match (base, exponent) {
        (1, _) => return Some(wrap(1)),
        (0, 1..) => return Some(wrap(0)),
        (-1, n) => return Some(wrap(if n % 2 == 0 { 1 } else { -1 })),
        _ => {}
    }
    base.checked_pow(u32::try_from(exponent).ok()?).map(wrap)
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rounding {
    HalfEven,
    TowardZero,
    Ceiling,
    Floor,
}

/// Rounds a decimal at `place` digits after the point (negative: before it). With fewer digits zeros are added; where
/// they do not fit in 34 digits the number stays as it is, or is NaN when `strict`, as the infinities then are too.
pub(super) fn round_decimal(v: &Value, place: i64, mode: Rounding, strict: bool) -> Value {
    let Value::Decimal128(d) = v else { return v.clone() };
    let text = number::decimal_to_string(*d);
    let Some((negative, digits, exponent)) = split_decimal(&text) else {
        return if strict { Value::Decimal128(Decimal128::NAN) } else { v.clone() };
    };
    let drop = -(exponent + place);
    if drop <= 0 {
        let digits = digits.trim_start_matches('0').len() as i64 - drop;
        let unit = number::decimal_from_str(&format!("1E{}", -place));
        return match unit {
            Some(unit) if digits <= 34 || d.is_zero() => Value::Decimal128(d.quantize(unit)),
            _ if strict => Value::Decimal128(Decimal128::NAN),
            _ => v.clone(),
        };
    }
    let rounded = round_digits(digits, drop as usize, negative, mode);
    let out = format!("{}{}E{}", if negative { "-" } else { "" }, rounded, -place);
    number::decimal_from_str(&out).map_or_else(|| v.clone(), Value::Decimal128)
}

/// Sign, digits and exponent of a finite decimal's text.
fn split_decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match body.split_once(['E', 'e']) {
        Some((m, e)) => (m, e.parse::<i64>().ok()?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    digits.bytes().all(|b| b.is_ascii_digit()).then_some((negative, digits, exponent - fraction.len() as i64))
}

fn round_digits(digits: String, drop: usize, negative: bool, mode: Rounding) -> String {
    let keep = digits.len().saturating_sub(drop);
    let (head, tail) = digits.split_at(keep);
    // With more dropped than there are digits, the first dropped digit is a zero to the left of them.
    let first = if drop > digits.len() { b'0' } else { tail.bytes().next().unwrap_or(b'0') };
    let rest_nonzero = if drop > digits.len() {
        tail.bytes().any(|b| b != b'0')
    } else {
        tail.bytes().skip(1).any(|b| b != b'0')
    };
    let exact = first == b'0' && !rest_nonzero;
    let odd = head.bytes().last().is_some_and(|b| (b - b'0') % 2 == 1);
    let up = match mode {
        Rounding::TowardZero => false,
        Rounding::Ceiling => !negative && !exact,
        Rounding::Floor => negative && !exact,
        Rounding::HalfEven => first > b'5' || (first == b'5' && (rest_nonzero || odd)),
    };
    let mut n: u128 = head.parse().unwrap_or(0);
    n += up as u128;
    n.to_string()
}

pub fn round(args: &mut [Arg]) -> Eval {
    round_or_trunc("$round", args, Rounding::HalfEven)
}
pub fn trunc(args: &mut [Arg]) -> Eval {
    round_or_trunc("$trunc", args, Rounding::TowardZero)
}

fn round_or_trunc(name: &str, args: &mut [Arg], mode: Rounding) -> Eval {
    let place = match args.get(1) {
        None => 0,
        Some(p) if is_nullish(p) || is_nullish(&args[0]) => return null(),
        Some(Some(p)) if p.is_number() => place_of(name, p)?,
        Some(p) => bail!(16004, "cannot apply {name} with precision value {}", type_name(p)),
    };
    if is_nullish(&args[0]) {
        return null();
    }
    if !numeric(&args[0]) {
        bail!(51081, "{name} only supports numeric types, not {}", type_name(&args[0]));
    }
    let Some(v) = args[0].take() else { return null() };
    if !(-20..=100).contains(&place) {
        bail!(51083, "cannot apply {name} with precision value {place} value must be in [-20, 100]");
    }
    match v {
        Value::Double(d) => done(Value::Double(round_double(d, place, mode))),
        Value::Decimal128(_) => done(round_decimal(&v, place, mode, false)),
        Value::Int32(i) => done(number::int_or_long(round_integer(name, i as i64, place, mode)?)),
        Value::Int64(i) => done(Value::Int64(round_integer(name, i, place, mode)?)),
        v => done(v),
    }
}

fn place_of(name: &str, p: &Value) -> Result<i64> {
    if let Some(i) = exact_i32(p) {
        return Ok(i as i64);
    }
    let d = number::as_f64(p).unwrap_or(f64::NAN);
    if d.is_finite() && d.trunc() != d {
        bail!(51082, "precision argument to  {name} must be a integral value");
    }
    if is_decimal(p) && d.is_nan() || d.is_finite() && !is_decimal(p) {
        bail!(51082, "precision argument to  {name} must be a integral value");
    }
    bail!(31109, "Can't coerce out of range value {} to long", text(p))
}

fn round_double(d: f64, place: i64, mode: Rounding) -> f64 {
    if !d.is_finite() || d == 0.0 {
        return d;
    }
    if place == 0 {
        return if mode == Rounding::HalfEven { d.round_ties_even() } else { d.trunc() };
    }
    // The exact value of the double to 34 digits is what is rounded, not its shortest text.
    let Some((negative, digits, exponent)) = split_decimal(&format!("{d:.33e}")) else { return d };
    let drop = -(exponent + place);
    if drop <= 0 {
        return d;
    }
    let rounded = round_digits(digits, drop as usize, negative, mode);
    format!("{}{}e{}", if negative { "-" } else { "" }, rounded, -place).parse().unwrap_or(d)
}

fn round_integer(name: &str, i: i64, place: i64, mode: Rounding) -> Result<i64> {
    if place >= 0 {
        return Ok(i);
    }
    let Some(unit) = 10i128.checked_pow(place.unsigned_abs() as u32) else { return Ok(0) };
    let i = i as i128;
    let (quotient, rest) = (i / unit, i % unit);
    let twice = rest.abs() * 2;
    let up = mode == Rounding::HalfEven && (twice > unit || (twice == unit && quotient % 2 != 0));
    let out = (quotient + if up { i.signum() } else { 0 }) * unit;
    i64::try_from(out).map_err(|_| {
        err!(
            51080,
            "invalid conversion from Decimal128 result in {name} resulting from arguments: [{i}, {place}]"
        )
    })
}

pub fn sigmoid(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) {
        return null();
    }
    let one = number::to_decimal(&Value::Int32(1)).unwrap_or(Decimal128::ZERO);
    match args[0].take() {
        Some(Value::Decimal128(d)) => done(Value::Decimal128(quiet(one.over(one.plus(d.negate().exp()))))),
        Some(v) if v.is_number() => {
            let x = number::as_f64(&v).unwrap_or(f64::NAN);
            done(Value::Double(1.0 / (1.0 + (-x).exp())))
        }
        v => bail!(TYPE_MISMATCH, "$multiply only supports numeric types, not {}", type_name(&v)),
    }
}
