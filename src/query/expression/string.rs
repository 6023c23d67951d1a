//! Strings. Positions count bytes in the `Bytes` operators and code points in the `CP` ones.

use super::parse::{self, STRING_BYTES_LIMIT};
use super::{Arg, Eval, Expression, Node, Variables, Vars, is_nullish, number, type_name};
use document::{Doc, Error, Result, Value, bail, meter};
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of a text that are looked through in the time of a unit of work.
const BYTES_A_UNIT: usize = 256;

fn null() -> Eval {
    Ok(Some(Value::Null))
}
fn string(s: impl Into<String>) -> Eval {
    Ok(Some(Value::String(s.into())))
}
fn int(i: usize) -> Eval {
    Ok(Some(document::number::int_or_long(i as i64)))
}
fn show(v: &Arg) -> String {
    v.as_ref().map_or("missing".to_string(), parse::show)
}

pub fn concat(args: &mut [Arg]) -> Eval {
    let mut out = String::new();
    for a in args.iter() {
        match a {
            Some(Value::String(s)) => extend(&mut out, s)?,
            v if is_nullish(v) => return null(),
            v => bail!(16702, "$concat only supports strings, not {}", type_name(v)),
        }
    }
    string(out)
}

/// A string of a scalar, as the oldest string operators take it: nullish is empty, most types print, others fail.
pub fn coerce(v: &Arg) -> Result<String> {
    Ok(match v {
        v if is_nullish(v) => String::new(),
        Some(Value::String(s) | Value::Symbol(s) | Value::JavaScript(s)) => s.clone(),
        Some(Value::Int32(i)) => i.to_string(),
        Some(Value::Int64(i)) => i.to_string(),
        Some(Value::Double(d)) => six_digits(*d),
        Some(Value::Decimal128(d)) => number::decimal_text(*d),
        Some(Value::DateTime(ms)) => super::date_format::iso(*ms),
        Some(Value::Timestamp(t)) => timestamp_text(t.secs, t.inc),
        v => bail!(16007, "can't convert from BSON type {} to String", type_name(v)),
    })
}

/// A double as `%g` prints it: six significant digits.
fn six_digits(d: f64) -> String {
    if d.is_nan() {
        return "nan".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if d == 0.0 {
        return if d.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let text = format!("{d:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let e: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => s.to_string(),
    };
    if (-4..6).contains(&e) {
        return trimmed(&format!("{d:.*}", (5 - e).max(0) as usize));
    }
    format!("{}e{}{:02}", trimmed(mantissa), if e < 0 { '-' } else { '+' }, e.abs())
}

/// `Jan  1 00:00:00:1`: month, day, time and increment.
fn timestamp_text(secs: u32, inc: u32) -> String {
    let c = super::date_format::Civil::from_ms(secs as i64 * 1000);
    let month = super::date_format::month_name(c.month);
    format!("{} {:>2} {:02}:{:02}:{:02}:{inc}", &month[..3], c.day, c.hour, c.minute, c.second)
}

/// A number as a long: doubles truncated, decimals rounded half to even and saturated at the least.
fn coerce_long(v: &Value) -> Result<i64> {
    match v {
        Value::Double(d) if !(-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(d) => {
            bail!(31109, "Can't coerce out of range value {} to long", parse::show(v))
        }
        Value::Decimal128(d) => {
            Ok(document::number::to_i64_exact(&Value::Decimal128(d.round())).unwrap_or(i64::MIN))
        }
        v => Ok(document::number::to_i64_saturating(v).unwrap_or(0)),
    }
}

pub fn to_lower(args: &mut [Arg]) -> Eval {
    string(coerce(&args[0])?.to_ascii_lowercase())
}
pub fn to_upper(args: &mut [Arg]) -> Eval {
    string(coerce(&args[0])?.to_ascii_uppercase())
}
pub fn strcasecmp(args: &mut [Arg]) -> Eval {
    let (a, b) = (coerce(&args[0])?.to_ascii_uppercase(), coerce(&args[1])?.to_ascii_uppercase());
    Ok(Some(Value::Int32(a.cmp(&b) as i32)))
}

pub fn str_len_bytes(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::String(s)) => int(s.len()),
        v => bail!(34473, "$strLenBytes requires a string argument, found: {}", type_name(v)),
    }
}
pub fn str_len_cp(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::String(s)) => int(s.chars().count()),
        v => bail!(34471, "$strLenCP requires a string argument, found: {}", type_name(v)),
    }
}

pub fn substr_bytes(args: &mut [Arg]) -> Eval {
    let s = coerce(&args[0])?;
    let number = |v: &Arg| v.as_ref().filter(|v| v.is_number()).map(coerce_long).transpose();
    let Some(start) = number(&args[1])? else {
        bail!(
            16034,
            "$substrBytes:  starting index must be a numeric type (is BSON type {})",
            type_name(&args[1])
        );
    };
    let Some(length) = number(&args[2])? else {
        bail!(16035, "$substrBytes:  length must be a numeric type (is BSON type {})", type_name(&args[2]));
    };
    if start < 0 {
        bail!(50752, "$substrBytes:  starting index must be non-negative (got: {start})");
    }
    let start = start as usize;
    let end = if length < 0 { s.len() } else { start.saturating_add(length as usize).min(s.len()) };
    let continues = |at: usize| s.as_bytes().get(at).is_some_and(|b| b & 0xC0 == 0x80);
    if continues(start) {
        bail!(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.");
    }
    if continues(end) {
        bail!(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.");
    }
    string(s.get(start..end).unwrap_or(""))
}

pub fn substr_cp(args: &mut [Arg]) -> Eval {
    let s = coerce(&args[0])?;
    let (start, length) = (&args[1], &args[2]);
    let numeric = |v: &Arg| v.as_ref().is_some_and(Value::is_number);
    if !numeric(start) {
        bail!(34450, "$substrCP: starting index must be a numeric type (is BSON type {})", type_name(start));
    }
    let Some(from) = start.as_ref().and_then(number::exact_i32) else {
        bail!(
            34451,
            "$substrCP: starting index cannot be represented as a 32-bit integral value: {}",
            show(start)
        );
    };
    if !numeric(length) {
        bail!(34452, "$substrCP: length must be a numeric type (is BSON type {})", type_name(length));
    }
    let Some(count) = length.as_ref().and_then(number::exact_i32) else {
        bail!(34453, "$substrCP: length cannot be represented as a 32-bit integral value: {}", show(length));
    };
    if count < 0 {
        bail!(34454, "$substrCP: length must be a nonnegative integer.");
    }
    if from < 0 {
        bail!(34455, "$substrCP: the starting index must be nonnegative integer.");
    }
    string(s.chars().skip(from as usize).take(count as usize).collect::<String>())
}

pub fn split(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    let Some(Value::String(s)) = &args[0] else {
        bail!(
            40085,
            "$split requires an expression that evaluates to a string as a first argument, found: {}",
            type_name(&args[0])
        );
    };
    let Some(Value::String(separator)) = &args[1] else {
        bail!(
            10503900,
            "$split requires an expression that evaluates to a string or regex as a second argument, found: {}",
            type_name(&args[1])
        );
    };
    if separator.is_empty() {
        bail!(40087, "$split requires a non-empty separator");
    }
    // A separator that does not occur is looked for in one go.
    meter::spend(s.len() / BYTES_A_UNIT)?;
    let mut parts = Vec::new();
    for part in s.split(separator.as_str()) {
        meter::spend(1)?;
        parts.push(Value::from(part));
    }
    Ok(Some(Value::Array(parts)))
}

/// The optional start and end of the index operators.
fn bounds(name: &str, args: &[Arg], length: usize) -> Result<(usize, usize)> {
    let one = |at: usize, which: &str, default: usize| -> Result<usize> {
        let Some(v) = args.get(at) else { return Ok(default) };
        let Some(i) = v.as_ref().and_then(number::exact_i32) else {
            let value = show(v);
            bail!(
                40096,
                "{name} requires an integral {which} index, found a value of type: {}, with value: \"{value}\"",
                type_name(v)
            );
        };
        if i < 0 {
            bail!(40097, "{name} requires a nonnegative {which} index, found: {i}");
        }
        Ok(i as usize)
    };
    Ok((one(2, "starting", 0)?, one(3, "ending", length)?.min(length)))
}

pub fn index_of_bytes(args: &mut [Arg]) -> Eval {
    let Some((s, token)) = haystack("$indexOfBytes", args, 40091, 40092)? else { return null() };
    meter::spend(s.len() / BYTES_A_UNIT)?;
    let (start, end) = bounds("$indexOfBytes", args, s.len())?;
    if start > s.len() || end < start {
        return Ok(Some(Value::Int32(-1)));
    }
    if token.is_empty() {
        return int(start);
    }
    // A text begins and ends in another between characters only.
    let (start, end) = (s.ceil_char_boundary(start), s.floor_char_boundary(end));
    let found = if start < end { s[start..end].find(token) } else { None };
    found.map_or(Ok(Some(Value::Int32(-1))), |at| int(at + start))
}

pub fn index_of_cp(args: &mut [Arg]) -> Eval {
    let Some((s, token)) = haystack("$indexOfCP", args, 40093, 40094)? else { return null() };
    meter::spend(s.len() / BYTES_A_UNIT)?;
    let (start, end) = bounds("$indexOfCP", args, s.chars().count())?;
    if s.is_empty() && token.is_empty() && start == 0 {
        return int(0);
    }
    let rest = s.char_indices().nth(start).map_or("", |(at, _)| &s[at..]);
    let found = rest.find(token).map(|at| start + rest[..at].chars().count());
    // The end bounds where a match begins; it may go on behind it.
    found.filter(|at| *at < end).map_or(Ok(Some(Value::Int32(-1))), int)
}

/// The text to search and what to look for; `None` where the first argument is nullish.
fn haystack<'a>(name: &str, args: &'a [Arg], first: i32, second: i32) -> Result<Option<(&'a str, &'a str)>> {
    if is_nullish(&args[0]) {
        return Ok(None);
    }
    let Some(Value::String(s)) = &args[0] else {
        let text = format!("{name} requires a string as the first argument, found: {}", type_name(&args[0]));
        return Err(Error::new(first, text));
    };
    let Some(Value::String(token)) = &args[1] else {
        let text = format!("{name} requires a string as the second argument, found: {}", type_name(&args[1]));
        return Err(Error::new(second, text));
    };
    Ok(Some((s, token)))
}

#[derive(Debug)]
struct Trim {
    name: &'static str,
    input: Expression,
    chars: Option<Expression>,
}

/// What `$trim` removes without `chars`: the whitespace the server lists, and NUL.
const WHITESPACE: &[char] = &[
    '\0', ' ', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

/// `chars` of more bytes are looked up by hash, so that long ones do not make the work quadratic.
const SEARCHED_SET_MAX: usize = 64;

impl Node for Trim {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        if is_nullish(&input) {
            return null();
        }
        let Some(Value::String(s)) = &input else {
            let (v, t) = (show(&input), type_name(&input));
            bail!(50699, "{} requires its input to be a string, got {v} (of type {t}) instead.", self.name);
        };
        let Some(chars) = &self.chars else { return string(self.cut(s, |c| WHITESPACE.contains(&c))) };
        let chars = chars.eval(root, vars)?;
        if is_nullish(&chars) {
            return null();
        }
        let Some(Value::String(set)) = &chars else {
            let (v, t) = (show(&chars), type_name(&chars));
            bail!(50700, "{} requires 'chars' to be a string, got {v} (of type {t}) instead.", self.name);
        };
        if set.len() <= SEARCHED_SET_MAX {
            return string(self.cut(s, |c| set.contains(c)));
        }
        let set: HashSet<char> = set.chars().collect();
        string(self.cut(s, |c| set.contains(&c)))
    }
    fn children(&self) -> Vec<&Expression> {
        [&self.input].into_iter().chain(&self.chars).collect()
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Trim {
    fn cut<'a>(&self, s: &'a str, unwanted: impl Fn(char) -> bool) -> &'a str {
        match self.name {
            "$ltrim" => s.trim_start_matches(unwanted),
            "$rtrim" => s.trim_end_matches(unwanted),
            _ => s.trim_matches(unwanted),
        }
    }
}

pub fn trim(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(50696, "{name} only supports an object as an argument, found {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["input", "chars"].contains(k)) {
        bail!(50694, "{name} found an unknown argument: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(50695, "{name} requires an 'input' field") };
    let input = parse::expression(input, vars)?;
    let chars = d.get("chars").map(|v| parse::expression(v, vars)).transpose()?;
    Ok(Expression::Special(Arc::new(Trim { name, input, chars })))
}

#[derive(Debug)]
struct Replace {
    name: &'static str,
    input: Expression,
    find: Expression,
    replacement: Expression,
}

impl Node for Replace {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        let find = self.find.eval(root, vars)?;
        let replacement = self.replacement.eval(root, vars)?;
        let is_string = |v: &Arg| matches!(v, Some(Value::String(_)));
        if !is_string(&input) && !is_nullish(&input) {
            bail!(10503904, "{} requires that 'input' be a string, found: {}", self.name, show(&input));
        }
        if !is_string(&find) && !is_nullish(&find) {
            bail!(10503901, "{} requires that 'find' be a string, found: {}", self.name, show(&find));
        }
        if !is_string(&replacement) && !is_nullish(&replacement) {
            bail!(
                10503902,
                "{} requires that 'replacement' be a string, found: {}",
                self.name,
                show(&replacement)
            );
        }
        let all = self.name == "$replaceAll";
        match (&input, &find, &replacement) {
            (Some(Value::String(s)), Some(Value::String(f)), Some(Value::String(r))) => {
                string(replaced(s, f, r, if all { usize::MAX } else { 1 })?)
            }
            _ => null(),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input, &self.find, &self.replacement]
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

/// `s` with `to` in the place of the first occurrences of `find`, `most` of them.
///
/// # Errors
/// 16493 as soon as the result is too long, and those of [`meter::spend`].
fn replaced(s: &str, find: &str, to: &str, most: usize) -> Result<String> {
    meter::spend(s.len() / BYTES_A_UNIT)?;
    let (mut out, mut copied) = (String::new(), 0);
    for (at, found) in s.match_indices(find).take(most) {
        meter::spend(1)?;
        extend(&mut out, &s[copied..at])?;
        extend(&mut out, to)?;
        copied = at + found.len();
    }
    extend(&mut out, &s[copied..])?;
    Ok(out)
}

/// Appends to a text that must not become too long.
fn extend(out: &mut String, more: &str) -> Result<()> {
    if out.len() + more.len() >= STRING_BYTES_LIMIT {
        bail!(16493, "Tried to create string longer than 16MB");
    }
    out.push_str(more);
    Ok(())
}

pub fn replace(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(51751, "{name} requires an object as an argument, found: {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["input", "find", "replacement"].contains(k)) {
        bail!(51750, "{name} found an unknown argument: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(51749, "{name} requires 'input' to be specified") };
    let Some(find) = d.get("find") else { bail!(51748, "{name} requires 'find' to be specified") };
    let Some(replacement) = d.get("replacement") else {
        bail!(51747, "{name} requires 'replacement' to be specified");
    };
    Ok(Expression::Special(Arc::new(Replace {
        name,
        input: parse::expression(input, vars)?,
        find: parse::expression(find, vars)?,
        replacement: parse::expression(replacement, vars)?,
    })))
}
