//! Decimal128: the fields of its encoding, text, exact order against doubles, arithmetic.
//!
//! ```text
//! bit 127      sign
//! bits 126-113 exponent, biased by 6176      value = coefficient * 10^(exponent - 6176)
//! bits 112-0   coefficient, at most 10^34-1  (a larger one, or the form whose bits 126-125 are 11, counts as 0)
//! bits 126-122 11110 infinity, 11111 NaN
//! ```
//!
//! Text follows the BSON Decimal128 specification. Arithmetic is the Intel library's, rounding half to even.

use crate::Decimal128;
use dfp_number_sys::{BID128, bid128_000 as intel};
use std::cmp::Ordering;
use std::fmt;

/// The significant digits of a decimal.
pub const DIGITS_MAX: usize = 34;
const COEFFICIENT_MAX: u128 = 10u128.pow(34) - 1;
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
const BIAS: i32 = 6176;

/// What a decimal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `coefficient * 10^exponent`; the coefficient is below 10^34.
    Finite {
        negative: bool,
        coefficient: u128,
        exponent: i32,
    },
}

impl Decimal128 {
    pub const ZERO: Decimal128 = Decimal128::from_bits((BIAS as u128) << 113);
    pub const NAN: Decimal128 = Decimal128::from_bits(0x7c << 120);
    pub const INFINITY: Decimal128 = Decimal128::from_bits(0x78 << 120);
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128::from_bits(0xf8 << 120);

    const fn from_bits(bits: u128) -> Decimal128 {
        Decimal128(bits.to_le_bytes())
    }
    pub fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }
    pub fn is_nan(self) -> bool {
        self.bits() >> 122 & 0x1f == 0x1f
    }
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }
    pub fn is_finite(self) -> bool {
        matches!(self.parts(), Parts::Finite { .. })
    }
    pub fn is_negative(self) -> bool {
        self.bits() >> 127 == 1
    }
    pub fn parts(self) -> Parts {
        let bits = self.bits();
        let negative = bits >> 127 == 1;
        match bits >> 122 & 0x1f {
            0x1f => return Parts::Nan,
            0x1e => return Parts::Infinity { negative },
            _ => {}
        }
        if bits >> 125 & 3 == 3 {
            let exponent = (bits >> 111 & 0x3fff) as i32 - BIAS;
            return Parts::Finite { negative, coefficient: 0, exponent };
        }
        let exponent = (bits >> 113 & 0x3fff) as i32 - BIAS;
        let coefficient = bits & ((1 << 113) - 1);
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Parts::Finite { negative, coefficient, exponent }
    }
    /// Encodes a coefficient below 10^34. The exponent is brought into range by moving zeros where that is exact,
    /// else the value overflows to infinity or is rounded toward zero of the subnormal range, half to even.
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        let (mut c, mut e) = (coefficient, exponent);
        while e > EXPONENT_MAX && c != 0 && c <= COEFFICIENT_MAX / 10 {
            c *= 10;
            e -= 1;
        }
        if e > EXPONENT_MAX {
            if c != 0 {
                return if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
            }
            e = EXPONENT_MAX;
        }
        if e < EXPONENT_MIN {
            c = shift_right_rounding(c, e.abs_diff(EXPONENT_MIN), false);
            e = EXPONENT_MIN;
        }
        Decimal128::from_bits((negative as u128) << 127 | ((e + BIAS) as u128) << 113 | c)
    }
    pub fn from_i64(v: i64) -> Decimal128 {
        Decimal128::from_parts(v < 0, v.unsigned_abs() as u128, 0)
    }
    /// The double taken to 15 significant digits, as the server converts where it must choose (`$add`, `$toDecimal`).
    pub fn from_f64(v: f64) -> Decimal128 {
        if v.is_nan() {
            return Decimal128::NAN;
        }
        if v.is_infinite() {
            return if v < 0.0 { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
        }
        if v == 0.0 {
            return if v.is_sign_negative() { Decimal128::ZERO.negate() } else { Decimal128::ZERO };
        }
        Decimal128::parse(&format!("{v:.14e}")).unwrap_or(Decimal128::NAN)
    }
    /// Rounded to nearest.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::Nan => f64::NAN,
            Parts::Infinity { negative } => signed(f64::INFINITY, negative),
            Parts::Finite { negative, coefficient, exponent } => {
                signed(nearest(coefficient, exponent), negative)
            }
        }
    }
    /// Truncated toward zero, clamped to the range; NaN is 0.
    pub fn to_i64_saturating(self) -> i64 {
        let (negative, magnitude) = match self.parts() {
            Parts::Nan => return 0,
            Parts::Infinity { negative } => (negative, u128::MAX),
            Parts::Finite { negative, coefficient, exponent } => {
                (negative, integral(coefficient, exponent).0)
            }
        };
        match (negative, i64::try_from(magnitude)) {
            (false, Ok(m)) => m,
            (true, Ok(m)) => -m,
            (false, Err(_)) => i64::MAX,
            (true, Err(_)) => i64::MIN,
        }
    }
    /// The value as an int64 when it is exactly one.
    pub fn to_i64_exact(self) -> Option<i64> {
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else { return None };
        let (magnitude, exact) = integral(coefficient, exponent);
        let magnitude = i128::try_from(magnitude).ok().filter(|_| exact)?;
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }
    /// Reads the BSON specification's text form; more digits than fit are rounded half to even.
    pub fn parse(text: &str) -> Option<Decimal128> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if rest.eq_ignore_ascii_case("nan") {
            return Some(Decimal128::NAN);
        }
        if rest.eq_ignore_ascii_case("inf") || rest.eq_ignore_ascii_case("infinity") {
            return Some(if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY });
        }
        parse_finite(negative, rest)
    }
    pub fn negate(self) -> Decimal128 {
        Decimal128::from_bits(self.bits() ^ 1 << 127)
    }
    pub fn absolute(self) -> Decimal128 {
        Decimal128::from_bits(self.bits() & !(1 << 127))
    }
    fn intel(self) -> BID128 {
        let b = self.bits();
        BID128::new(b as u64, (b >> 64) as u64)
    }
    fn from_intel(b: BID128) -> Decimal128 {
        // SAFETY: BID128 is `repr(C)` around `[u64; 2]`, low half first, and gives no other access to it.
        let [low, high] = unsafe { std::mem::transmute::<BID128, [u64; 2]>(b) };
        Decimal128::from_bits((high as u128) << 64 | low as u128)
    }
}

macro_rules! arithmetic {
    (rounded binary $($name:ident $f:ident;)*) => { impl Decimal128 { $(
        pub fn $name(self, other: Decimal128) -> Decimal128 {
            Decimal128::from_intel(intel::$f(self.intel(), other.intel(), dfp_number_sys::RND_NEAREST_EVEN, &mut 0))
        } )* } };
    (rounded unary $($name:ident $f:ident;)*) => { impl Decimal128 { $(
        pub fn $name(self) -> Decimal128 {
            Decimal128::from_intel(intel::$f(self.intel(), dfp_number_sys::RND_NEAREST_EVEN, &mut 0))
        } )* } };
    (exact unary $($name:ident $f:ident;)*) => { impl Decimal128 { $(
        pub fn $name(self) -> Decimal128 { Decimal128::from_intel(intel::$f(self.intel(), &mut 0)) } )* } };
}
arithmetic! { rounded binary
    plus bid128_add; minus bid128_sub; times bid128_mul; over bid128_div; power bid128_pow;
    quantize bid128_quantize; atan2 bid128_atan2;
}
arithmetic! { rounded unary
    exp bid128_exp; ln bid128_log; log10 bid128_log10; square_root bid128_sqrt;
    sin bid128_sin; cos bid128_cos; tan bid128_tan; asin bid128_asin; acos bid128_acos; atan bid128_atan;
    sinh bid128_sinh; cosh bid128_cosh; tanh bid128_tanh; asinh bid128_asinh; acosh bid128_acosh; atanh bid128_atanh;
}
arithmetic! { exact unary
    floor bid128_round_integral_negative; ceiling bid128_round_integral_positive;
    truncate bid128_round_integral_zero; round bid128_round_integral_nearest_even;
}
impl Decimal128 {
    /// The remainder with the sign of the dividend.
    pub fn remainder(self, other: Decimal128) -> Decimal128 {
        Decimal128::from_intel(intel::bid128_fmod(self.intel(), other.intel(), &mut 0))
    }
}

fn signed(v: f64, negative: bool) -> f64 {
    if negative { -v } else { v }
}

/// `c / 10^n`, half to even; `sticky` says that digits below `c` were dropped and were not all zero.
fn shift_right_rounding(c: u128, n: u32, sticky: bool) -> u128 {
    if n == 0 {
        return c;
    }
    let Some(unit) = 10u128.checked_pow(n) else { return 0 };
    let (quotient, rest, half) = (c / unit, c % unit, unit / 2);
    let up = rest > half || rest == half && (sticky || quotient % 2 == 1);
    quotient + up as u128
}

/// The integral part of `c * 10^e` (saturated at u128's maximum) and whether nothing was cut off.
fn integral(c: u128, e: i32) -> (u128, bool) {
    if c == 0 {
        return (0, true);
    }
    let power = 10u128.checked_pow(e.unsigned_abs());
    match (e >= 0, power) {
        (true, power) => (power.and_then(|p| c.checked_mul(p)).unwrap_or(u128::MAX), true),
        (false, Some(p)) => (c / p, c.is_multiple_of(p)),
        (false, None) => (0, false),
    }
}

/// The double nearest to `c * 10^e`; infinity when it is beyond all.
fn nearest(c: u128, e: i32) -> f64 {
    if e == 0 && c < 1 << 53 {
        return c as f64;
    }
    // The standard library's reader is exact for any number of digits.
    format!("{c}e{e}").parse().unwrap_or(f64::NAN)
}

fn parse_finite(negative: bool, text: &str) -> Option<Decimal128> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut c: u128 = 0;
    let (mut digits, mut dropped, mut seen, mut point) = (0u32, 0i64, false, false);
    let (mut fraction, mut first_dropped, mut sticky) = (0i64, 0u8, false);
    for b in mantissa.bytes() {
        match b {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                seen = true;
                fraction += point as i64;
                if c > COEFFICIENT_MAX / 10 || digits as usize == DIGITS_MAX {
                    match dropped {
                        0 => first_dropped = b - b'0',
                        _ => sticky |= b != b'0',
                    }
                    dropped += 1;
                } else {
                    c = c * 10 + (b - b'0') as u128;
                    digits += (c != 0) as u32;
                }
            }
            _ => return None,
        }
    }
    if !seen {
        return None;
    }
    let exponent = exponent.saturating_sub(fraction).saturating_add(dropped);
    let below = exponent < EXPONENT_MIN as i64;
    if !below && (first_dropped > 5 || first_dropped == 5 && (sticky || c % 2 == 1)) {
        c += 1;
    }
    let (c, exponent) = if c > COEFFICIENT_MAX { (c / 10, exponent + 1) } else { (c, exponent) };
    if below {
        // Rounded once, at the subnormal range's last digit.
        let n = u32::try_from(EXPONENT_MIN as i64 - exponent).unwrap_or(u32::MAX);
        let c = shift_right_rounding(c, n, first_dropped != 0 || sticky);
        return Some(Decimal128::from_parts(negative, c, EXPONENT_MIN));
    }
    Some(Decimal128::from_parts(negative, c, i32::try_from(exponent).unwrap_or(i32::MAX)))
}

/// A decimal integer with an optional sign, clamped far outside every exponent's range.
fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let clamp = 1_000_000_000_000;
    let n = digits.bytes().fold(0i64, |n, b| (n * 10 + (b - b'0') as i64).min(clamp));
    Some(if negative { -n } else { n })
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::Nan => return f.write_str("NaN"),
            Parts::Infinity { negative } => {
                return f.write_str(if negative { "-Infinity" } else { "Infinity" });
            }
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            f.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        if exponent > 0 || adjusted < -6 {
            f.write_str(&digits[..1])?;
            if digits.len() > 1 {
                write!(f, ".{}", &digits[1..])?;
            }
            return write!(f, "E{adjusted:+}");
        }
        if exponent == 0 {
            return f.write_str(&digits);
        }
        let places = exponent.unsigned_abs() as usize;
        match digits.len().checked_sub(places).filter(|n| *n > 0) {
            Some(whole) => write!(f, "{}.{}", &digits[..whole], &digits[whole..]),
            None => write!(f, "0.{}{digits}", "0".repeat(places - digits.len())),
        }
    }
}

/// Compares the magnitudes of two finite decimals.
pub(crate) fn compare_magnitude(a: (u128, i32), b: (u128, i32)) -> Ordering {
    match (a.0 == 0, b.0 == 0) {
        (false, false) => normalize(a.0, a.1).cmp(&normalize(b.0, b.1)),
        (a_zero, b_zero) => b_zero.cmp(&a_zero),
    }
}

/// (exponent of the first digit, coefficient stretched to 34 digits): the order of these pairs is that of the values,
/// and equal values have one pair. `c` is neither zero nor above 10^34-1.
pub(crate) fn normalize(c: u128, e: i32) -> (i32, u128) {
    let digits = c.ilog10() as i32 + 1;
    let stretch = (DIGITS_MAX as i32 - digits).max(0);
    (e + digits - 1, c * 10u128.pow(stretch as u32))
}

/// The largest double not above `c * 10^e`, and whether it is that value.
pub(crate) fn floor_to_f64(c: u128, e: i32) -> (f64, bool) {
    if c == 0 {
        return (0.0, true);
    }
    if e == 0 && c < 1 << 53 {
        return (c as f64, true);
    }
    let near = nearest(c, e);
    if near == f64::INFINITY {
        return (f64::MAX, false);
    }
    if near == 0.0 {
        return (0.0, false);
    }
    match compare_f64(near, c, e) {
        Ordering::Equal => (near, true),
        Ordering::Less => (near, false),
        Ordering::Greater => (near.next_down(), false),
    }
}

/// Exactly compares a positive finite double with `c * 10^e`, which is near it (so the numbers stay below 2^1300).
fn compare_f64(d: f64, c: u128, e: i32) -> Ordering {
    let bits = d.to_bits();
    let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (m, q) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    // m * 2^q against c * 5^e * 2^e, both sides multiplied until every exponent is positive.
    let mut left = Big::from(m as u128);
    let mut right = Big::from(c);
    if e >= 0 {
        right.times_power_of_5(e as u32);
    } else {
        left.times_power_of_5(e.unsigned_abs());
    }
    let shift = q - e;
    if shift >= 0 {
        left.shift_left(shift as u32);
    } else {
        right.shift_left(shift.unsigned_abs());
    }
    left.cmp(&right)
}

/// A natural number: limbs of 32 bits, the least first, no zero at the end.
struct Big(Vec<u32>);
impl Big {
    fn from(v: u128) -> Big {
        let mut limbs: Vec<u32> = (0..4).map(|i| (v >> (32 * i)) as u32).collect();
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Big(limbs)
    }
    fn times(&mut self, factor: u32) {
        let mut carry = 0u64;
        for limb in &mut self.0 {
            let product = *limb as u64 * factor as u64 + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }
    fn times_power_of_5(&mut self, n: u32) {
        for _ in 0..n / 13 {
            self.times(5u32.pow(13));
        }
        self.times(5u32.pow(n % 13));
    }
    fn shift_left(&mut self, n: u32) {
        self.times(1 << (n % 32));
        self.0.splice(0..0, std::iter::repeat_n(0, (n / 32) as usize));
    }
    fn cmp(&self, other: &Big) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// Compares a non-negative, not-NaN double with the magnitude of a finite decimal.
pub(crate) fn compare_f64_magnitude(d: f64, c: u128, e: i32) -> Ordering {
    let (floor, exact) = floor_to_f64(c, e);
    match d.partial_cmp(&floor).unwrap_or(Ordering::Equal) {
        Ordering::Equal if !exact => Ordering::Less,
        order => order,
    }
}
