//! An encoding of values whose byte order is the BSON order. DO NOT CHANGE: indexes on disk hold these bytes.
//!
//! A key is its components one after another. No component is a prefix of another, so components need no separator
//! and anything (a record id) may follow the last. A descending component has all its bits inverted.
//!
//! ```text
//! component := kind:u8 content
//! string    := its bytes, with 0x00 as 0x01 0x01 and 0x01 as 0x01 0x02, then 0x00       (also symbol, code);
//!              where there is a collation, its sort key stands for it
//! document  := (rank+1:u8 name 0x00 component)* 0x00
//! array     := component* 0x00                                                          (kinds are never 0)
//! binary    := length:u32be subtype bytes
//! date      := int64be with the sign bit flipped;  timestamp := u64be;  ObjectId: its 12 bytes;  bool: in the kind
//! regex     := pattern 0x00 options 0x00;          DBPointer := length:u32be ns ObjectId
//! ```
//!
//! Numbers of all types share one form, so that equal numbers have equal keys. Let v be the magnitude:
//!
//! ```text
//! zero, NaN, infinity  kind alone
//! v < 2^63             kind says the sign and the number n of bytes that follow:
//!                      2*floor(v) + (1 if v has a fraction) in n = 1..8 bytes, big-endian; if a fraction: rest
//! v >= 2^63            kind; rest
//! rest                 the greatest double <= v:u64be, then 0x00 if that is v, else
//!                      0x01 exponent:u16be coefficient:u128be   (of v as a decimal stretched to 34 digits)
//! ```
//! Only decimals need the last form, and none has more than 34 digits, so it is exact. For a negative number all bytes
//! after the kind are inverted, and the kinds run backwards.

use crate::collation::Collator;
use crate::compare::canonical_type;
use crate::decimal::{Parts, floor_to_f64, normalize};
use crate::{Decimal128, Doc, Value, ValueRef};

mod kind {
    pub(super) const MIN_KEY: u8 = 0x0A;
    pub(super) const UNDEFINED: u8 = 0x0F;
    pub(super) const NULL: u8 = 0x14;
    pub(super) const NAN: u8 = 0x1E;
    pub(super) const NEGATIVE_INFINITY: u8 = 0x1F;
    pub(super) const NEGATIVE_LARGE: u8 = 0x20;
    /// Zero; `ZERO - n` and `ZERO + n` are the numbers of n bytes.
    pub(super) const ZERO: u8 = 0x29;
    pub(super) const POSITIVE_LARGE: u8 = 0x32;
    pub(super) const INFINITY: u8 = 0x33;
    pub(super) const STRING: u8 = 0x3C;
    pub(super) const DOCUMENT: u8 = 0x46;
    pub(super) const ARRAY: u8 = 0x50;
    pub(super) const BINARY: u8 = 0x5A;
    pub(super) const OBJECT_ID: u8 = 0x64;
    pub(super) const FALSE: u8 = 0x6E;
    pub(super) const TRUE: u8 = 0x6F;
    pub(super) const DATE: u8 = 0x78;
    pub(super) const TIMESTAMP: u8 = 0x82;
    pub(super) const REGEX: u8 = 0x8C;
    pub(super) const DB_POINTER: u8 = 0x96;
    pub(super) const CODE: u8 = 0xA0;
    pub(super) const CODE_WITH_SCOPE: u8 = 0xAA;
    pub(super) const MAX_KEY: u8 = 0xF0;
}

/// The key of several components; `descending` may be shorter than `values` (the rest ascends).
pub fn encode(values: &[ValueRef<'_>], descending: &[bool]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * 16);
    for (i, v) in values.iter().enumerate() {
        append(&mut out, *v, descending.get(i).copied().unwrap_or(false));
    }
    out
}

/// Appends one component.
#[inline]
pub fn append(out: &mut Vec<u8>, v: ValueRef<'_>, descending: bool) {
    append_with(out, v, descending, None);
}

/// Appends one component whose strings are in the collator's order.
pub(crate) fn append_with(out: &mut Vec<u8>, v: ValueRef<'_>, descending: bool, collator: Option<&Collator>) {
    let start = out.len();
    append_ascending(out, v, collator);
    if descending {
        invert(&mut out[start..]);
    }
}

pub fn append_value(out: &mut Vec<u8>, v: &Value, descending: bool) {
    append_value_with(out, v, descending, None);
}

pub(crate) fn append_value_with(out: &mut Vec<u8>, v: &Value, descending: bool, collator: Option<&Collator>) {
    match v.as_scalar() {
        Some(v) => append_with(out, v, descending, collator),
        None => {
            let holder = v.to_holder();
            append_with(out, holder.get("").unwrap_or(ValueRef::Null), descending, collator);
        }
    }
}

pub(crate) fn invert(bytes: &mut [u8]) {
    for b in bytes {
        *b = !*b;
    }
}

fn append_ascending(out: &mut Vec<u8>, v: ValueRef<'_>, collator: Option<&Collator>) {
    match v {
        ValueRef::MinKey => out.push(kind::MIN_KEY),
        ValueRef::Undefined => out.push(kind::UNDEFINED),
        ValueRef::Null => out.push(kind::NULL),
        ValueRef::Int32(n) => append_i64(out, n as i64),
        ValueRef::Int64(n) => append_i64(out, n),
        ValueRef::Double(n) => append_f64(out, n),
        ValueRef::Decimal128(n) => append_decimal(out, n),
        ValueRef::String(s) | ValueRef::Symbol(s) => match collator {
            None => append_text(out, kind::STRING, s.as_bytes()),
            Some(collator) => append_text(out, kind::STRING, collator.sort_key(s).as_bytes()),
        },
        ValueRef::Document(d) => {
            out.push(kind::DOCUMENT);
            append_fields(out, d, collator);
        }
        ValueRef::Array(d) => {
            out.push(kind::ARRAY);
            for e in d {
                append_ascending(out, e.value(), collator);
            }
            out.push(0);
        }
        ValueRef::Binary(subtype, bytes) => {
            out.push(kind::BINARY);
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.push(subtype);
            out.extend_from_slice(bytes);
        }
        ValueRef::ObjectId(id) => {
            out.push(kind::OBJECT_ID);
            out.extend_from_slice(&id.0);
        }
        ValueRef::Boolean(b) => out.push(if b { kind::TRUE } else { kind::FALSE }),
        ValueRef::DateTime(millis) => {
            out.push(kind::DATE);
            out.extend_from_slice(&(millis as u64 ^ 1 << 63).to_be_bytes());
        }
        ValueRef::Timestamp(t) => {
            out.push(kind::TIMESTAMP);
            out.extend_from_slice(&t.as_u64().to_be_bytes());
        }
        ValueRef::Regex(pattern, options) => {
            out.push(kind::REGEX);
            out.extend_from_slice(pattern.as_bytes());
            out.push(0);
            out.extend_from_slice(options.as_bytes());
            out.push(0);
        }
        ValueRef::DbPointer(ns, id) => {
            out.push(kind::DB_POINTER);
            out.extend_from_slice(&(ns.len() as u32).to_be_bytes());
            out.extend_from_slice(ns.as_bytes());
            out.extend_from_slice(&id.0);
        }
        ValueRef::JavaScript(code) => append_text(out, kind::CODE, code.as_bytes()),
        ValueRef::JavaScriptWithScope(code, scope) => {
            append_text(out, kind::CODE_WITH_SCOPE, code.as_bytes());
            append_fields(out, scope, None);
        }
        ValueRef::MaxKey => out.push(kind::MAX_KEY),
    }
}

fn append_fields(out: &mut Vec<u8>, d: Doc<'_>, collator: Option<&Collator>) {
    for e in d {
        out.push(canonical_type(e.tag()) + 1);
        out.extend_from_slice(e.name_bytes());
        out.push(0);
        append_ascending(out, e.value(), collator);
    }
    out.push(0);
}

fn append_text(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    if bytes.iter().all(|b| *b > 1) {
        out.extend_from_slice(bytes);
    } else {
        for b in bytes {
            match b {
                0 | 1 => out.extend_from_slice(&[1, b + 1]),
                b => out.push(*b),
            }
        }
    }
    out.push(0);
}

fn append_i64(out: &mut Vec<u8>, n: i64) {
    if n == i64::MIN {
        return append_parts(out, true, 1 << 63, false, (9223372036854775808.0, None));
    }
    append_small(out, n < 0, n.unsigned_abs() << 1);
}

/// `shifted` is twice the whole part, plus one if a fraction follows.
fn append_small(out: &mut Vec<u8>, negative: bool, shifted: u64) {
    if shifted == 0 {
        return out.push(kind::ZERO);
    }
    let bytes = shifted.to_be_bytes();
    let first = (shifted.leading_zeros() / 8) as usize;
    let n = (8 - first) as u8;
    if negative {
        out.push(kind::ZERO - n);
        out.extend_from_slice(&(!shifted).to_be_bytes()[first..]);
    } else {
        out.push(kind::ZERO + n);
        out.extend_from_slice(&bytes[first..]);
    }
}

fn append_f64(out: &mut Vec<u8>, n: f64) {
    let magnitude = n.abs();
    if magnitude < 9223372036854775808.0 {
        let whole = magnitude as u64;
        let fraction = whole as f64 != magnitude;
        append_parts(out, n < 0.0, whole, fraction, (magnitude, None));
    } else if n.is_nan() {
        out.push(kind::NAN);
    } else if magnitude.is_infinite() {
        out.push(if n < 0.0 { kind::NEGATIVE_INFINITY } else { kind::INFINITY });
    } else {
        append_parts(out, n < 0.0, 1 << 63, false, (magnitude, None));
    }
}

fn append_decimal(out: &mut Vec<u8>, n: Decimal128) {
    let (negative, c, e) = match n.parts() {
        Parts::Nan => return out.push(kind::NAN),
        Parts::Infinity { negative: true } => return out.push(kind::NEGATIVE_INFINITY),
        Parts::Infinity { negative: false } => return out.push(kind::INFINITY),
        Parts::Finite { coefficient: 0, .. } => return out.push(kind::ZERO),
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    let (whole, fraction) = match 10u128.checked_pow(e.unsigned_abs()) {
        Some(p) if e < 0 => (c / p, c % p != 0),
        Some(p) => (c.saturating_mul(p), false),
        None => (if e < 0 { 0 } else { u128::MAX }, e < 0),
    };
    let (floor, exact) = floor_to_f64(c, e);
    let whole = u64::try_from(whole).unwrap_or(u64::MAX).min(1 << 63);
    append_parts(out, negative, whole, fraction, (floor, (!exact).then(|| normalize(c, e))));
}

/// `whole` of 2^63 stands for that and everything above; `rest` is the double and, if that is not all, the decimal.
fn append_parts(
    out: &mut Vec<u8>,
    negative: bool,
    whole: u64,
    fraction: bool,
    rest: (f64, Option<(i32, u128)>),
) {
    let large = whole >= 1 << 63;
    if large {
        out.push(if negative { kind::NEGATIVE_LARGE } else { kind::POSITIVE_LARGE });
    } else {
        append_small(out, negative, whole << 1 | fraction as u64);
        if !fraction {
            return;
        }
    }
    let start = out.len();
    out.extend_from_slice(&rest.0.to_bits().to_be_bytes());
    match rest.1 {
        None => out.push(0),
        Some((exponent, coefficient)) => {
            out.push(1);
            // The exponent of the first digit is within -6176..=6144.
            out.extend_from_slice(&((exponent + 0x4000) as u16).to_be_bytes());
            out.extend_from_slice(&coefficient.to_be_bytes());
        }
    }
    if negative {
        invert(&mut out[start..]);
    }
}

/// The number of bytes the first component of `key` takes; `None` when the bytes are no key.
pub fn component_length(key: &[u8], descending: bool) -> Option<usize> {
    let mut reader = Reader { key, at: 0, mask: if descending { 0xFF } else { 0 } };
    reader.component()?;
    Some(reader.at)
}

/// Whether an ascending component that begins so is null's.
pub(crate) fn is_null(kind: u8) -> bool {
    kind == kind::NULL
}

/// What an ascending component says of its value.
pub(crate) enum Plain {
    /// A whole number of any type.
    Whole(i64),
    Double(f64),
    Value(Value),
}

/// Reads one whole ascending component; `None` where it does not tell the value: null, decimals, and what nests or is rare.
/// Strings are taken to be without a collation.
pub(crate) fn plain(component: &[u8]) -> Option<Plain> {
    let (kind, content) = component.split_first()?;
    let integer = || Some(u64::from_be_bytes(content.try_into().ok()?));
    Some(Plain::Value(match *kind {
        kind::MIN_KEY => Value::MinKey,
        kind::MAX_KEY => Value::MaxKey,
        kind::FALSE => Value::Boolean(false),
        kind::TRUE => Value::Boolean(true),
        kind::STRING => Value::String(text(content)?),
        kind::OBJECT_ID => Value::ObjectId(crate::ObjectId(content.try_into().ok()?)),
        kind::DATE => Value::DateTime((integer()? ^ 1 << 63) as i64),
        kind::TIMESTAMP => Value::Timestamp(crate::Timestamp::from_u64(integer()?)),
        kind::BINARY => {
            Value::Binary(crate::Binary { subtype: *content.get(4)?, bytes: content.get(5..)?.to_vec() })
        }
        kind::NEGATIVE_INFINITY => return Some(Plain::Double(f64::NEG_INFINITY)),
        kind::INFINITY => return Some(Plain::Double(f64::INFINITY)),
        kind::NEGATIVE_LARGE => return double(content, true),
        kind::POSITIVE_LARGE => return double(content, false),
        kind if kind.abs_diff(kind::ZERO) <= 8 => return small(kind, content),
        _ => return None,
    }))
}

/// A string as [`append_text`] wrote it.
fn text(content: &[u8]) -> Option<String> {
    let content = content.strip_suffix(&[0])?;
    let mut out = Vec::with_capacity(content.len());
    let mut bytes = content.iter();
    while let Some(b) = bytes.next() {
        out.push(if *b == 1 { bytes.next()?.checked_sub(1)? } else { *b });
    }
    String::from_utf8(out).ok()
}

/// A number as [`append_small`] wrote it, with what follows.
fn small(kind: u8, content: &[u8]) -> Option<Plain> {
    let n = kind.abs_diff(kind::ZERO) as usize;
    let negative = kind < kind::ZERO;
    let (digits, rest) = content.split_at_checked(n)?;
    let shifted = digits.iter().fold(0u64, |all, b| all << 8 | u64::from(if negative { !b } else { *b }));
    if shifted & 1 == 1 {
        return double(rest, negative);
    }
    let magnitude = (shifted >> 1) as i64;
    Some(Plain::Whole(if negative { -magnitude } else { magnitude }))
}

/// A double as [`append_parts`] wrote it; `None` for a decimal that none equals.
fn double(rest: &[u8], negative: bool) -> Option<Plain> {
    let mask = if negative { 0xFF } else { 0 };
    let (bits, last) = rest.split_first_chunk::<8>()?;
    if last != [mask] {
        return None;
    }
    let magnitude = f64::from_bits(u64::from_be_bytes(bits.map(|b| b ^ mask)));
    Some(Plain::Double(if negative { -magnitude } else { magnitude }))
}

/// Walks an encoded key without decoding values. Nesting is kept in a list, not on the stack.
struct Reader<'a> {
    key: &'a [u8],
    at: usize,
    mask: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let b = *self.key.get(self.at)? ^ self.mask;
        self.at += 1;
        Some(b)
    }
    fn skip(&mut self, n: usize) -> Option<()> {
        self.at = self.at.checked_add(n).filter(|at| *at <= self.key.len())?;
        Some(())
    }
    fn skip_text(&mut self) -> Option<()> {
        while self.byte()? != 0 {}
        Some(())
    }
    fn length(&mut self) -> Option<usize> {
        let mut n = 0;
        for _ in 0..4 {
            n = n << 8 | self.byte()? as usize;
        }
        Some(n)
    }
    fn rest(&mut self, negative: bool) -> Option<()> {
        self.skip(8)?;
        match self.byte()? ^ if negative { 0xFF } else { 0 } {
            0 => Some(()),
            _ => self.skip(18),
        }
    }
    fn component(&mut self) -> Option<()> {
        // For each open level: whether it is a document (names before its components).
        let mut open: Vec<bool> = Vec::new();
        loop {
            match open.last() {
                Some(is_document) => {
                    let is_document = *is_document;
                    if self.byte()? == 0 {
                        open.pop();
                    } else {
                        match is_document {
                            true => self.skip_text()?,
                            false => self.at -= 1,
                        }
                        self.value(&mut open)?;
                    }
                }
                None => self.value(&mut open)?,
            }
            if open.is_empty() {
                return Some(());
            }
        }
    }
    /// Passes one value; of a document or array only its head, and opens a level.
    fn value(&mut self, open: &mut Vec<bool>) -> Option<()> {
        match self.byte()? {
            kind::STRING | kind::CODE => self.skip_text()?,
            kind::DOCUMENT => open.push(true),
            kind::ARRAY => open.push(false),
            kind::CODE_WITH_SCOPE => {
                self.skip_text()?;
                open.push(true);
            }
            kind::BINARY => {
                let n = self.length()?;
                self.skip(n + 1)?;
            }
            kind::OBJECT_ID => self.skip(12)?,
            kind::DATE | kind::TIMESTAMP => self.skip(8)?,
            kind::REGEX => {
                self.skip_text()?;
                self.skip_text()?;
            }
            kind::DB_POINTER => {
                let n = self.length()?;
                self.skip(n + 12)?;
            }
            kind::NEGATIVE_LARGE => self.rest(true)?,
            kind::POSITIVE_LARGE => self.rest(false)?,
            k if k.abs_diff(kind::ZERO) <= 8 && k != kind::ZERO => {
                self.skip(k.abs_diff(kind::ZERO) as usize)?;
                let negative = k < kind::ZERO;
                let last = *self.key.get(self.at - 1)? ^ self.mask ^ if negative { 0xFF } else { 0 };
                if last & 1 == 1 {
                    self.rest(negative)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}
