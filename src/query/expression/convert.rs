//! `$convert` and the operators named after a type.

use super::number::decimal_text;
use super::parse::STRING_BYTES_LIMIT;
use super::{Eval, Expression, Node, Variables, Vars, date_format, is_nullish, parse};
use document::encoding;
use document::{Binary, Doc, Document, Error, ObjectId, Result, Value, bail, codes, number};
use std::sync::Arc;

/// A type that values can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    tag: u8,
    subtype: u8,
}

#[derive(Debug)]
struct Convert {
    name: &'static str,
    input: Expression,
    to: Goal,
    on_error: Option<Expression>,
    on_null: Option<Expression>,
    format: Option<Expression>,
    base: Option<Expression>,
    byte_order: Option<Expression>,
}

#[derive(Debug)]
enum Goal {
    Fixed(Target),
    /// Null where it gives nothing.
    Computed(Expression),
    /// `{type: <expression>, subtype: <expression>}`, of which neither may be null.
    Described(Expression, Option<Expression>),
}

impl Convert {
    fn target(&self, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Target>> {
        match &self.to {
            Goal::Fixed(t) => Ok(Some(*t)),
            Goal::Computed(e) => match e.eval(root, vars)? {
                None | Some(Value::Null | Value::Undefined) => Ok(None),
                Some(Value::Document(d)) => {
                    target_of(d.get("type").unwrap_or(&Value::Null), d.get("subtype")).map(Some)
                }
                Some(v) => target_of(&v, None).map(Some),
            },
            Goal::Described(kind, subtype) => {
                let mut value = |e: &Expression| Ok(e.eval(root, vars)?.unwrap_or(Value::Null));
                let kind = value(kind)?;
                let subtype = subtype.as_ref().map(value).transpose()?;
                target_of(&kind, subtype.as_ref()).map(Some)
            }
        }
    }
    /// A named argument that must be a string of a list, when given.
    fn option(&self, e: &Option<Expression>, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Value>> {
        match e {
            None => Ok(None),
            Some(e) => Ok(e.eval(root, vars)?.filter(|v| !matches!(v, Value::Null | Value::Undefined))),
        }
    }
}

/// A subtype that does not exist, and what is no subtype at all.
const WRONG_SUBTYPE: i32 = 4341107;
const NO_SUBTYPE: i32 = 4341108;

fn target_of(kind: &Value, subtype: Option<&Value>) -> Result<Target> {
    let tag = type_tag(kind)?;
    let subtype = subtype.filter(|_| tag == 0x05).map_or(Ok(0), check_subtype)?;
    Ok(Target { tag, subtype })
}

fn check_subtype(v: &Value) -> Result<u8> {
    if !v.is_number() {
        bail!(4341108, "In $convert, the 'subtype' argument must be a number, but got {}", v.type_name());
    }
    let Some(n) = number::to_i64_exact(v) else {
        bail!(4341106, "In $convert, numeric 'subtype' argument is not an integer");
    };
    match n {
        0..=9 | 128..=255 => Ok(n as u8),
        _ => bail!(
            4341107,
            "In $convert, numeric value for 'subtype' does not correspond to a BinData type: {n}"
        ),
    }
}

/// The BSON tag of a type given by name or number.
fn type_tag(v: &Value) -> Result<u8> {
    const NAMES: [&str; 21] = [
        "double",
        "string",
        "object",
        "array",
        "binData",
        "undefined",
        "objectId",
        "bool",
        "date",
        "null",
        "regex",
        "dbPointer",
        "javascript",
        "symbol",
        "javascriptWithScope",
        "int",
        "timestamp",
        "long",
        "decimal",
        "minKey",
        "maxKey",
    ];
    if let Value::String(s) = v {
        return match NAMES.iter().position(|n| n == s) {
            Some(i) if i < 19 => Ok(i as u8 + 1),
            Some(19) => Ok(0xFF),
            Some(_) => Ok(0x7F),
            None => bail!(BAD_VALUE, "Unknown type name: {s}"),
        };
    }
    if !v.is_number() {
        bail!(
            FAILED_TO_PARSE,
            "$convert's 'to' argument must be a string or number, but is {}",
            v.type_name()
        );
    }
    let Some(n) = number::to_i64_exact(v) else {
        bail!(FAILED_TO_PARSE, "In $convert, numeric 'to' argument is not an integer");
    };
    match n {
        1..=19 => Ok(n as u8),
        -1 => Ok(0xFF),
        127 => Ok(0x7F),
        // The number of what is missing is known, and nothing can become it.
        0 => Err(failure("Unsupported conversion to missing in $convert with no onError value")),
        _ => bail!(
            FAILED_TO_PARSE,
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {n}"
        ),
    }
}

impl Node for Convert {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        let target = self.target(root, vars);
        let options = Options {
            format: self.option(&self.format, root, vars)?,
            base: self.option(&self.base, root, vars)?,
            byte_order: self.option(&self.byte_order, root, vars)?,
        };
        // Of a target that is not used, the subtype alone may be wrong.
        let target = match target {
            Err(e) if is_nullish(&input) && matches!(e.code, WRONG_SUBTYPE | NO_SUBTYPE) => Ok(None),
            target => target,
        }?;
        if is_nullish(&input) {
            return match &self.on_null {
                Some(e) => e.eval(root, vars),
                None => Ok(Some(Value::Null)),
            };
        }
        let (Some(target), Some(v)) = (target, input) else { return Ok(Some(Value::Null)) };
        let quirk = self.name == "$toUUID";
        match (to(v, target, &options, quirk), &self.on_error) {
            (Ok(v), _) => Ok(Some(v)),
            (Err(e), Some(otherwise)) if e.code == codes::CONVERSION_FAILURE => otherwise.eval(root, vars),
            (Err(e), _) => Err(e),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        let mut out = vec![&self.input];
        match &self.to {
            Goal::Fixed(_) => {}
            Goal::Computed(e) => out.push(e),
            Goal::Described(kind, subtype) => out.extend(std::iter::once(kind).chain(subtype)),
        }
        out.extend(
            [&self.on_error, &self.on_null, &self.format, &self.base, &self.byte_order].into_iter().flatten(),
        );
        out
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

#[derive(Default)]
struct Options {
    format: Option<Value>,
    base: Option<Value>,
    byte_order: Option<Value>,
}

impl Options {
    fn check(&self) -> Result<()> {
        match &self.format {
            None => {}
            Some(Value::String(s))
                if ["base64", "base64url", "utf8", "hex", "uuid", "auto"].contains(&s.as_str()) => {}
            Some(Value::String(s)) => {
                bail!(4341125, "Invalid 'format' argument for $convert: {s}")
            }
            Some(v) => {
                bail!(4341114, "$convert requires that 'format' be a string, found: {}", v.type_name())
            }
        }
        match &self.byte_order {
            None => {}
            Some(Value::String(s)) if ["little", "big"].contains(&s.as_str()) => {}
            Some(Value::String(s)) => bail!(9130002, "Invalid 'byteOrder' argument for $convert: {s}"),
            Some(v) => {
                bail!(9130001, "$convert requires that 'byteOrder' be a string, found: {}", v.type_name())
            }
        }
        Ok(())
    }
    fn format(&self) -> Option<&str> {
        self.format.as_ref().and_then(Value::as_str)
    }
    fn big_endian(&self) -> bool {
        self.byte_order.as_ref().and_then(Value::as_str) == Some("big")
    }
}

fn failure(text: impl Into<String>) -> Error {
    Error::new(codes::CONVERSION_FAILURE, text)
}

fn to(v: Value, target: Target, options: &Options, uuid: bool) -> Result<Value> {
    match target.tag {
        0x01 => to_double(v, options),
        0x02 => to_string(v, options),
        0x05 => to_binary(v, target.subtype, options, uuid),
        0x07 => to_object_id(v),
        0x08 => Ok(Value::Boolean(to_bool(&v))),
        0x09 => to_date(v),
        0x10 => to_int(v, options),
        0x12 => to_long(v, options),
        0x13 => to_decimal(v),
        tag if tag == v.tag() && !matches!(tag, 0x03 | 0x04) => Err(unsupported(&v, tag)),
        tag => Err(unsupported(&v, tag)),
    }
}

fn unsupported(v: &Value, tag: u8) -> Error {
    let name = document::raw::type_name(tag);
    failure(format!(
        "Unsupported conversion from {} to {name} in $convert with no onError value",
        v.type_name()
    ))
}

/// Everything but false and zero is true.
fn to_bool(v: &Value) -> bool {
    v.truthy()
}

fn to_double(v: Value, options: &Options) -> Result<Value> {
    Ok(Value::Double(match &v {
        Value::Double(d) => *d,
        Value::Int32(i) => *i as f64,
        Value::Int64(i) => *i as f64,
        Value::Boolean(b) => f64::from(*b as u8),
        Value::DateTime(ms) => *ms as f64,
        Value::Decimal128(d) => {
            let x = number::as_f64(&v).unwrap_or(f64::NAN);
            let text = decimal_text(*d);
            if x.is_infinite() && !text.contains("Inf") {
                return Err(failure(format!(
                    "Conversion would overflow target type in $convert with no onError value: {text}"
                )));
            }
            x
        }
        Value::String(s) => return parse_double(s),
        Value::Binary(b) => return binary_to_double(&b.bytes, options.big_endian()),
        _ => return Err(unsupported(&v, 0x01)),
    }))
}

fn parse_double(s: &str) -> Result<Value> {
    let bad = |why: &str| {
        Err(failure(format!("Failed to parse number '{s}' in $convert with no onError value: {why}")))
    };
    if s.is_empty() {
        return bad("Empty string");
    }
    if s.starts_with(|c: char| c.is_whitespace()) {
        return bad("Leading whitespace");
    }
    // Of the prefixes of hexadecimal numbers the bare "0x" alone is refused.
    if s.starts_with("0x") {
        return bad("Did not consume whole string.");
    }
    let mantissa = s.split(['e', 'E']).next().unwrap_or_default();
    match parse_hexadecimal(s).or_else(|| s.parse::<f64>().ok()) {
        Some(d) if d.is_infinite() && s.bytes().any(|b| b.is_ascii_digit()) => bad("Out of range"),
        Some(0.0) if mantissa.bytes().any(|b| matches!(b, b'1'..=b'9')) => bad("Out of range"),
        Some(d) => Ok(Value::Double(d)),
        None => bad("Did not consume whole string."),
    }
}

/// `[+-]0x<hex>[.<hex>][p[+-]<decimal>]`, as C reads it.
fn parse_hexadecimal(s: &str) -> Option<f64> {
    let (sign, digits) = match s.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, s.strip_prefix('+').unwrap_or(s)),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (digits, exponent) = match digits.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut scale) = (0u128, i64::from(exponent) - 4 * fraction.len() as i64);
    for c in whole.chars().chain(fraction.chars()) {
        let digit = u128::from(c.to_digit(16)?);
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // Far below what a double keeps: that something is there is all that counts.
            mantissa |= u128::from(digit != 0);
            scale += 4;
        }
    }
    let scale = scale.clamp(-3000, 3000) as i32;
    let half = scale / 2;
    Some(sign * mantissa as f64 * f64::powi(2.0, half) * f64::powi(2.0, scale - half))
}

fn binary_to_double(bytes: &[u8], big: bool) -> Result<Value> {
    match bytes.len() {
        4 => {
            let b: [u8; 4] = bytes.try_into().unwrap_or_default();
            Ok(Value::Double(if big { f32::from_be_bytes(b) } else { f32::from_le_bytes(b) } as f64))
        }
        8 => {
            let b: [u8; 8] = bytes.try_into().unwrap_or_default();
            Ok(Value::Double(if big { f64::from_be_bytes(b) } else { f64::from_le_bytes(b) }))
        }
        n => Err(failure(format!(
            "Failed to convert '{n}' bytes to double in $convert because of invalid length: {n}"
        ))),
    }
}

fn binary_to_integer(bytes: &[u8], big: bool, most: usize) -> Result<i64> {
    let n = bytes.len();
    if !matches!(n, 1 | 2 | 4 | 8) || n > most {
        return Err(failure(format!(
            "Failed to convert '{n}' bytes to integer in $convert because of invalid length: {n}"
        )));
    }
    let mut ordered: Vec<u8> = bytes.to_vec();
    if big {
        ordered.reverse();
    }
    let negative = ordered.last().is_some_and(|b| b & 0x80 != 0);
    ordered.resize(8, if negative { 0xFF } else { 0 });
    Ok(i64::from_le_bytes(ordered.try_into().unwrap_or_default()))
}

/// A number as an integer, truncated toward zero, with the server's refusals.
fn truncated(v: &Value) -> Result<i64> {
    let x = number::as_f64(v).unwrap_or(f64::NAN);
    if x.is_nan() {
        return Err(failure(
            "Attempt to convert NaN value to integer type in $convert with no onError value",
        ));
    }
    if x.is_infinite() {
        return Err(failure(
            "Attempt to convert infinity value to integer type in $convert with no onError value",
        ));
    }
    let out = match v {
        Value::Double(d) if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(d) => {
            Some(*d as i64)
        }
        Value::Double(_) => None,
        v => number::to_i64_exact(v).or_else(|| {
            let whole =
                super::arithmetic::round_decimal(v, 0, super::arithmetic::Rounding::TowardZero, false);
            number::to_i64_exact(&whole)
        }),
    };
    out.ok_or_else(|| overflow(v))
}

fn overflow(v: &Value) -> Error {
    let shown = match v {
        Value::Double(d) => double_text(*d),
        v => parse::show(v),
    };
    failure(format!("Conversion would overflow target type in $convert with no onError value: {shown}"))
}

fn to_int(v: Value, options: &Options) -> Result<Value> {
    let wide = match &v {
        Value::Int32(_) => return Ok(v),
        Value::Int64(i) => *i,
        Value::Double(_) | Value::Decimal128(_) => truncated(&v)?,
        Value::Boolean(b) => *b as i64,
        Value::String(s) => parse_integer(s, options, i32::MIN as i64, i32::MAX as i64)?,
        Value::Binary(b) => binary_to_integer(&b.bytes, options.big_endian(), 4)?,
        _ => return Err(unsupported(&v, 0x10)),
    };
    i32::try_from(wide).map(Value::Int32).map_err(|_| overflow(&v))
}

fn to_long(v: Value, options: &Options) -> Result<Value> {
    Ok(Value::Int64(match &v {
        Value::Int32(i) => *i as i64,
        Value::Int64(i) => *i,
        Value::Double(_) | Value::Decimal128(_) => truncated(&v)?,
        Value::Boolean(b) => *b as i64,
        Value::DateTime(ms) => *ms,
        Value::String(s) => parse_integer(s, options, i64::MIN, i64::MAX)?,
        Value::Binary(b) => binary_to_integer(&b.bytes, options.big_endian(), 8)?,
        _ => return Err(unsupported(&v, 0x12)),
    }))
}

fn parse_integer(s: &str, options: &Options, least: i64, greatest: i64) -> Result<i64> {
    let bad =
        |why: &str| failure(format!("Failed to parse number '{s}' in $convert with no onError value: {why}"));
    let base = options.base.as_ref().and_then(number::to_i64_exact).unwrap_or(10) as u32;
    let (negative, digits) = match s.as_bytes().first() {
        None => return Err(bad("No digits")),
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    if digits.is_empty() {
        return Err(bad("No digits"));
    }
    let mut n: i128 = 0;
    for c in digits.chars() {
        let Some(d) = c.to_digit(base.clamp(2, 36)) else {
            return Err(bad(if digits.starts_with(|c: char| c.is_ascii_digit()) {
                "Did not consume whole string."
            } else {
                "No digits"
            }));
        };
        n = n * base as i128 + d as i128;
        if n > 1 << 64 {
            return Err(bad("Overflow"));
        }
    }
    let n = if negative { -n } else { n };
    i64::try_from(n).ok().filter(|n| (least..=greatest).contains(n)).ok_or_else(|| bad("Overflow"))
}

fn to_decimal(v: Value) -> Result<Value> {
    match &v {
        Value::Boolean(b) => Ok(decimal_of(&Value::Int32(*b as i32))),
        Value::DateTime(ms) => Ok(decimal_of(&Value::Int64(*ms))),
        Value::String(s) => match number::decimal_from_str(s) {
            Some(d) if !s.is_empty() && !s.starts_with(' ') && !out_of_range(s, d) => {
                Ok(Value::Decimal128(d))
            }
            read => {
                let why = match read {
                    _ if s.is_empty() => "Empty string",
                    Some(_) if !s.starts_with(' ') => {
                        "Conversion from string to decimal would be out of range"
                    }
                    _ => "Failed to parse string to decimal",
                };
                Err(failure(format!("Failed to parse number '{s}' in $convert with no onError value: {why}")))
            }
        },
        v if v.is_number() => Ok(decimal_of(v)),
        v => Err(unsupported(v, 0x13)),
    }
}

/// Whether digits became infinity, or digits other than zero became zero.
fn out_of_range(s: &str, d: document::Decimal128) -> bool {
    let mantissa = s.split(['e', 'E']).next().unwrap_or_default();
    let has = |least: u8| mantissa.bytes().any(|b| (least..=b'9').contains(&b));
    (has(b'0') && decimal_text(d).contains("Inf")) || (has(b'1') && d.is_zero())
}

fn decimal_of(v: &Value) -> Value {
    number::to_decimal(v).map_or_else(|| v.clone(), Value::Decimal128)
}

fn to_date(v: Value) -> Result<Value> {
    Ok(Value::DateTime(match &v {
        Value::DateTime(ms) => *ms,
        Value::Int64(ms) => *ms,
        Value::Double(_) | Value::Decimal128(_) => truncated(&v)?,
        Value::ObjectId(_) | Value::Timestamp(_) => date_format::moment(&v).unwrap_or(0),
        Value::String(s) => date_format::parse(s, None)?,
        _ => return Err(unsupported(&v, 0x09)),
    }))
}

fn to_object_id(v: Value) -> Result<Value> {
    match &v {
        Value::ObjectId(_) => Ok(v),
        Value::String(s) => {
            let bad = |why: String| {
                failure(format!("Failed to parse objectId '{s}' in $convert with no onError value: {why}"))
            };
            if s.len() != 24 {
                return Err(bad(format!(
                    "Invalid string length for parsing to OID, expected 24 but found {}",
                    s.len()
                )));
            }
            if let Some(c) = s.chars().find(|c| !c.is_ascii_hexdigit()) {
                return Err(bad(format!("Invalid character found in hex string: '{c}'")));
            }
            ObjectId::parse(s).map(Value::ObjectId).ok_or_else(|| bad("Invalid hex".into()))
        }
        _ => Err(unsupported(&v, 0x07)),
    }
}

fn to_string(v: Value, options: &Options) -> Result<Value> {
    Ok(Value::String(match &v {
        Value::String(_) => return Ok(v),
        Value::Boolean(b) => b.to_string(),
        Value::Double(d) => double_text(*d),
        Value::Int32(_) | Value::Int64(_) => integer_text(&v, options),
        Value::Decimal128(d) => decimal_text(*d),
        Value::ObjectId(o) => o.hex(),
        Value::DateTime(ms) => match date_format::Civil::from_ms(*ms).year {
            0..=9999 => date_format::iso(*ms),
            year => bail!(
                18537,
                "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
            ),
        },
        Value::Binary(b) => {
            options.check()?;
            return binary_to_string(b, options);
        }
        _ => return Err(unsupported(&v, 0x02)),
    }))
}

fn integer_text(v: &Value, options: &Options) -> String {
    let n = number::to_i64_exact(v).unwrap_or(0);
    match options.base.as_ref().and_then(number::to_i64_exact) {
        Some(2) => format!("{n:b}"),
        Some(8) => format!("{n:o}"),
        Some(16) => format!("{n:X}"),
        _ => n.to_string(),
    }
}

/// A double as `%.17g` shortens it: the fewest digits that read back the same, with an exponent outside 1e-4..1e16.
pub fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "NaN".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let text = format!("{d:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let e: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&e) {
        return d.to_string();
    }
    format!("{mantissa}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

fn binary_to_string(b: &Binary, options: &Options) -> Result<Value> {
    let uuid = || <[u8; 16]>::try_from(b.bytes.as_slice()).ok().map(|u| document::uuid::to_string(&u));
    let text = match options.format() {
        None => bail!(4341115, "Missing 'format' parameter to $convert"),
        Some("auto") if b.subtype == 4 && b.bytes.len() == 16 => uuid(),
        Some("uuid") if b.subtype == 4 => uuid(),
        Some("uuid") => None,
        Some("base64" | "auto") => Some(encoding::base64(&b.bytes)),
        Some("base64url") => Some(encoding::base64_url(&b.bytes)),
        Some("hex") => Some(parse::hex(&b.bytes)),
        Some(_) => String::from_utf8(b.bytes.clone()).ok(),
    };
    if let Some(text) = text.as_ref().filter(|text| text.len() >= STRING_BYTES_LIMIT) {
        if options.format() == Some("utf8") {
            bail!(16493, "$convert would produce a string of {} bytes, which is too long", text.len());
        }
        let length = text.len();
        return Err(failure(format!(
            "A string of {length} bytes is too long in $convert with no onError value"
        )));
    }
    text.map(Value::String).ok_or_else(|| {
        failure("Failed to convert BinData to string in $convert with no onError value".to_string())
    })
}

fn to_binary(v: Value, subtype: u8, options: &Options, uuid: bool) -> Result<Value> {
    let binary = |bytes: Vec<u8>| Ok(Value::Binary(Binary { subtype, bytes }));
    if matches!(v, Value::String(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_)) {
        options.check()?;
    }
    match &v {
        Value::Binary(b) if b.subtype == subtype => Ok(v),
        Value::Binary(_) => Err(failure(
            "Conversions between different BinData subtypes are not supported in $convert with no onError value",
        )),
        Value::String(s) => {
            let format = options.format().or(uuid.then_some("uuid"));
            let bytes = match format {
                None => bail!(4341115, "Missing 'format' parameter to $convert"),
                Some("uuid") if subtype == 4 => document::uuid::parse(s).map(|u| u.to_vec()),
                Some("uuid") => None,
                Some("auto") if subtype == 4 => document::uuid::parse(s).map(|u| u.to_vec()),
                // A UUID is read as one, and what else a text is must be said.
                Some(_) if subtype == 4 => None,
                Some("auto") => None,
                Some("base64") => encoding::from_base64(s),
                Some("base64url") => encoding::from_base64_url(s),
                Some("hex") => encoding::from_hex(s),
                Some(_) => Some(s.as_bytes().to_vec()),
            };
            match bytes {
                Some(bytes) => binary(bytes),
                None => Err(failure(format!(
                    "Input string '{s}' is not a valid {} in $convert with no onError value",
                    format.unwrap_or("")
                ))),
            }
        }
        Value::Int32(i) => binary(ordered(i.to_le_bytes().to_vec(), options)),
        Value::Int64(i) => binary(ordered(i.to_le_bytes().to_vec(), options)),
        Value::Double(d) => binary(ordered(d.to_le_bytes().to_vec(), options)),
        v => Err(unsupported(v, 0x05)),
    }
}

fn ordered(mut bytes: Vec<u8>, options: &Options) -> Vec<u8> {
    if options.big_endian() {
        bytes.reverse();
    }
    bytes
}

pub fn convert(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(FAILED_TO_PARSE, "$convert expects an object of named arguments but found: {}", v.type_name());
    };
    let known = ["input", "to", "onError", "onNull", "format", "base", "byteOrder"];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(FAILED_TO_PARSE, "$convert found an unknown argument: {bad}");
    }
    let part = |field: &str| d.get(field).map(|v| parse::expression(v, vars)).transpose();
    let Some(input) = part("input")? else { bail!(FAILED_TO_PARSE, "Missing 'input' parameter to $convert") };
    let Some(goal) = d.get("to") else { bail!(FAILED_TO_PARSE, "Missing 'to' parameter to $convert") };
    let to = match goal {
        Value::Document(t) if t.first().is_some_and(|(k, _)| !k.starts_with('$')) => named_goal(t, vars)?,
        other => Goal::Computed(parse::expression(other, vars)?),
    };
    Ok(Expression::Special(Arc::new(Convert {
        name,
        input,
        to,
        on_error: part("onError")?,
        on_null: part("onNull")?,
        format: part("format")?,
        base: part("base")?,
        byte_order: part("byteOrder")?,
    })))
}

fn named_goal(d: &Document, vars: &Variables) -> Result<Goal> {
    let Some(kind) = d.get("type") else { bail!(FAILED_TO_PARSE, "Missing 'type' parameter to $convert") };
    let subtype = d.get("subtype").map(|v| parse::expression(v, vars)).transpose()?;
    Ok(Goal::Described(parse::expression(kind, vars)?, subtype))
}

/// The type a one-argument operator names, with the format it implies.
fn goal_of(name: &str) -> (u8, u8, Option<&'static str>) {
    match name {
        "$toBool" => (0x08, 0, None),
        "$toInt" => (0x10, 0, None),
        "$toLong" => (0x12, 0, None),
        "$toDouble" => (0x01, 0, None),
        "$toDecimal" => (0x13, 0, None),
        "$toDate" => (0x09, 0, None),
        "$toObjectId" => (0x07, 0, None),
        "$toUUID" => (0x05, 4, Some("uuid")),
        _ => (0x02, 0, Some("auto")),
    }
}

pub fn to_type(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let input = match v {
        Value::Array(items) => match items.as_slice() {
            [one] => parse::expression(one, vars)?,
            other => bail!(50723, "{name} requires a single argument, got {}", other.len()),
        },
        one => parse::expression(one, vars)?,
    };
    let (tag, subtype, format) = goal_of(name);
    Ok(Expression::Special(Arc::new(Convert {
        name,
        input,
        to: Goal::Fixed(Target { tag, subtype }),
        on_error: None,
        on_null: None,
        format: format.map(|f| Expression::Constant(Value::from(f))),
        base: None,
        byte_order: None,
    })))
}
