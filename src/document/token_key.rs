//! Values as the keys that resume tokens publish. DO NOT CHANGE: clients keep tokens and compare them as text.
//!
//! This is the published key format of the real system, version 1, whose byte order is the BSON order. It is not the
//! format of [`crate::key_string`], which is for indexes on our disks.
//!
//! ```text
//! key       := value* 0x04
//! value     := kind content
//! number    := 0x29 for zero; else the whole part doubled, plus one if a fraction follows, in n = 1..8 bytes after
//!              0x2A + n (positive) or 0x28 - n (negative, all its bytes inverted); a fraction fills up eight bytes.
//!              Below one: 0x2A or 0x28 and the double; from 2^63 on: 0x33 or 0x1F and the double.
//! string    := 0x3C bytes 0x00, a zero byte within as 0x00 0xFF        (also symbol and code, kind 0xA0)
//! object    := 0x46 (type name 0x00 value)* 0x00;   array := 0x50 value* 0x00
//! binary    := 0x5A length subtype bytes, the length in one byte, or 0xFF and four
//! ```
//! Numbers lose their type: what is read back is an int, a long or a double of the same value.

use crate::{
    Binary, CodeWithScope, DbPointer, Doc, Document, Error, ObjectId, Regex, Result, Timestamp, Value,
    ValueRef, codes, number,
};

mod kind {
    pub(super) const END: u8 = 0x04;
    pub(super) const MIN_KEY: u8 = 0x0A;
    pub(super) const UNDEFINED: u8 = 0x0F;
    pub(super) const NULL: u8 = 0x14;
    pub(super) const NUMERIC: u8 = 0x1E;
    pub(super) const NEGATIVE_LARGE: u8 = 0x1F;
    pub(super) const NEGATIVE_SMALL: u8 = 0x28;
    pub(super) const ZERO: u8 = 0x29;
    pub(super) const POSITIVE_SMALL: u8 = 0x2A;
    pub(super) const POSITIVE_LARGE: u8 = 0x33;
    pub(super) const STRING: u8 = 0x3C;
    pub(super) const OBJECT: u8 = 0x46;
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

/// 2^63.
const LARGE: f64 = 9_223_372_036_854_775_808.0;
/// Documents in a key nest no deeper than documents may.
const DEPTH_MAX: usize = 250;

/// The key of several values.
pub fn encode(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    for value in values {
        append(&mut out, value);
    }
    out.push(kind::END);
    out
}

fn append(out: &mut Vec<u8>, value: &Value) {
    match value.as_scalar() {
        Some(v) => append_ref(out, v),
        None => append_ref(out, value.to_holder().get("").unwrap_or(ValueRef::Null)),
    }
}

fn append_ref(out: &mut Vec<u8>, v: ValueRef<'_>) {
    match v {
        ValueRef::MinKey => out.push(kind::MIN_KEY),
        ValueRef::MaxKey => out.push(kind::MAX_KEY),
        ValueRef::Undefined => out.push(kind::UNDEFINED),
        ValueRef::Null => out.push(kind::NULL),
        ValueRef::Int32(n) => append_whole(out, i64::from(n)),
        ValueRef::Int64(n) => append_whole(out, n),
        ValueRef::Double(n) => append_double(out, n),
        ValueRef::Decimal128(_) => match number::to_i64_exact(&v.to_value()) {
            Some(n) => append_whole(out, n),
            None => append_double(out, v.as_f64().unwrap_or(f64::NAN)),
        },
        ValueRef::String(s) | ValueRef::Symbol(s) => append_text(out, kind::STRING, s),
        ValueRef::JavaScript(s) => append_text(out, kind::CODE, s),
        ValueRef::JavaScriptWithScope(s, scope) => {
            append_text(out, kind::CODE_WITH_SCOPE, s);
            append_fields(out, scope);
        }
        ValueRef::Document(d) => {
            out.push(kind::OBJECT);
            append_fields(out, d);
        }
        ValueRef::Array(items) => {
            out.push(kind::ARRAY);
            items.iter().for_each(|e| append_ref(out, e.value()));
            out.push(0);
        }
        ValueRef::Binary(subtype, bytes) => append_binary(out, subtype, bytes),
        ValueRef::ObjectId(id) => append_fixed(out, kind::OBJECT_ID, &id.0),
        ValueRef::Boolean(b) => out.push(if b { kind::TRUE } else { kind::FALSE }),
        ValueRef::DateTime(ms) => append_fixed(out, kind::DATE, &(ms as u64 ^ 1 << 63).to_be_bytes()),
        ValueRef::Timestamp(t) => append_fixed(out, kind::TIMESTAMP, &t.as_u64().to_be_bytes()),
        ValueRef::Regex(pattern, options) => {
            append_fixed(out, kind::REGEX, pattern.as_bytes());
            append_fixed(out, 0, options.as_bytes());
            out.push(0);
        }
        ValueRef::DbPointer(ns, id) => {
            append_fixed(out, kind::DB_POINTER, &(ns.len() as u32).to_be_bytes());
            out.extend_from_slice(ns.as_bytes());
            out.extend_from_slice(&id.0);
        }
    }
}

fn append_fixed(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn append_text(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    for byte in text.bytes() {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out.push(0);
}

fn append_binary(out: &mut Vec<u8>, subtype: u8, bytes: &[u8]) {
    out.push(kind::BINARY);
    match u8::try_from(bytes.len()) {
        Ok(length) if length < 0xFF => out.push(length),
        _ => append_fixed(out, 0xFF, &(bytes.len() as u32).to_be_bytes()),
    }
    append_fixed(out, subtype, bytes);
}

fn append_fields(out: &mut Vec<u8>, d: Doc<'_>) {
    for e in d {
        append_fixed(out, kind_of_type(e.value()), e.name_bytes());
        out.push(0);
        append_ref(out, e.value());
    }
    out.push(0);
}

/// What stands before a field's name, so that types compare before names.
fn kind_of_type(v: ValueRef<'_>) -> u8 {
    match v {
        v if v.is_number() => kind::NUMERIC,
        ValueRef::Boolean(_) => kind::FALSE,
        v => {
            let mut one = Vec::new();
            append_ref(&mut one, v);
            one[0]
        }
    }
}

fn append_whole(out: &mut Vec<u8>, n: i64) {
    match n {
        0 => out.push(kind::ZERO),
        i64::MIN => append_inverted(out, kind::NEGATIVE_LARGE, true, &LARGE.to_bits().to_be_bytes()),
        n => append_doubled(out, n < 0, n.unsigned_abs() << 1),
    }
}

/// The whole part doubled, in as many bytes as it needs; how many those are.
fn append_doubled(out: &mut Vec<u8>, negative: bool, doubled: u64) {
    let first = (doubled.leading_zeros() / 8) as usize;
    let n = (8 - first) as u8;
    let kind = if negative { kind::NEGATIVE_SMALL - n } else { kind::POSITIVE_SMALL + n };
    append_inverted(out, kind, negative, &doubled.to_be_bytes()[first..]);
}

fn append_inverted(out: &mut Vec<u8>, kind: u8, inverted: bool, bytes: &[u8]) {
    out.push(kind);
    let mask = if inverted { 0xFF } else { 0 };
    out.extend(bytes.iter().map(|b| b ^ mask));
}

fn append_double(out: &mut Vec<u8>, n: f64) {
    let (negative, magnitude) = (n < 0.0, n.abs());
    let bits = magnitude.to_bits().to_be_bytes();
    if n.is_nan() {
        out.push(kind::NUMERIC);
    } else if n == 0.0 {
        out.push(kind::ZERO);
    } else if magnitude >= LARGE {
        let kind = if negative { kind::NEGATIVE_LARGE } else { kind::POSITIVE_LARGE };
        append_inverted(out, kind, negative, &bits);
    } else if magnitude < 1.0 {
        let kind = if negative { kind::NEGATIVE_SMALL } else { kind::POSITIVE_SMALL };
        append_inverted(out, kind, negative, &bits);
    } else if magnitude.fract() == 0.0 {
        append_doubled(out, negative, (magnitude as u64) << 1);
    } else {
        let doubled = (magnitude as u64) << 1 | 1;
        let fraction_bytes = (doubled.leading_zeros() / 8) as usize;
        append_doubled(out, negative, doubled);
        // A double of 53 bits leaves room for its whole fraction in what is left of eight bytes.
        let fraction = (magnitude.fract() * 2f64.powi(8 * fraction_bytes as i32)) as u64;
        let bytes = fraction.to_be_bytes();
        let mask = if negative { 0xFF } else { 0 };
        out.extend(bytes[8 - fraction_bytes..].iter().map(|b| b ^ mask));
    }
}

/// Reads a key. What follows its end is passed over, and a key may lack its end: both are so in the real server.
///
/// # Errors
/// Overflow (15) for a key that ends early, 50811 for an unknown kind.
pub fn decode(bytes: &[u8]) -> Result<Vec<Value>> {
    let mut reader = Reader { bytes };
    let mut values = Vec::new();
    while let Some((kind, rest)) = reader.bytes.split_first() {
        reader.bytes = rest;
        if *kind == kind::END {
            break;
        }
        values.push(reader.value(*kind, 0)?);
    }
    Ok(values)
}

struct Reader<'a> {
    bytes: &'a [u8],
}

fn ends_early() -> Error {
    Error::new(codes::OVERFLOW, "buffer too small for the key that a resume token holds")
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or_else(ends_early)?;
        self.bytes = rest;
        Ok(head)
    }
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N).map(|bytes| bytes.try_into().unwrap_or([0; N]))
    }
    fn byte(&mut self) -> Result<u8> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return Err(Error::new(codes::OVERFLOW, "the key of a resume token is nested too deeply"));
        }
        Ok(match kind {
            kind::MIN_KEY => Value::MinKey,
            kind::MAX_KEY => Value::MaxKey,
            kind::UNDEFINED => Value::Undefined,
            kind::NULL => Value::Null,
            kind::STRING => Value::String(self.text()?),
            kind::CODE => Value::JavaScript(self.text()?),
            kind::CODE_WITH_SCOPE => {
                CodeWithScope { code: self.text()?, scope: self.document(depth)? }.into()
            }
            kind::OBJECT => Value::Document(self.document(depth)?),
            kind::ARRAY => Value::Array(self.array(depth)?),
            kind::BINARY => Value::Binary(self.binary()?),
            kind::OBJECT_ID => Value::ObjectId(ObjectId(self.fixed()?)),
            kind::FALSE => Value::Boolean(false),
            kind::TRUE => Value::Boolean(true),
            kind::DATE => Value::DateTime((u64::from_be_bytes(self.fixed()?) ^ 1 << 63) as i64),
            kind::TIMESTAMP => Value::Timestamp(Timestamp::from_u64(u64::from_be_bytes(self.fixed()?))),
            kind::REGEX => Regex { pattern: self.name()?, options: self.name()? }.into(),
            kind::DB_POINTER => {
                let length = u32::from_be_bytes(self.fixed()?) as usize;
                let ns = String::from_utf8_lossy(self.take(length)?).into_owned();
                DbPointer { ns, id: ObjectId(self.fixed()?) }.into()
            }
            kind::NUMERIC..=kind::POSITIVE_LARGE => self.number(kind)?,
            kind => return Err(Error::new(50811, format!("Unknown type: {kind}"))),
        })
    }

    fn number(&mut self, kind: u8) -> Result<Value> {
        let negative = kind < kind::ZERO;
        let mask = if negative { 0xFF } else { 0 };
        let length = match kind {
            kind::NUMERIC => return Ok(Value::Double(f64::NAN)),
            kind::ZERO => return Ok(Value::Int32(0)),
            kind::NEGATIVE_LARGE | kind::NEGATIVE_SMALL | kind::POSITIVE_SMALL | kind::POSITIVE_LARGE => {
                let bytes: [u8; 8] = self.fixed()?;
                let magnitude = f64::from_bits(u64::from_be_bytes(bytes.map(|b| b ^ mask)));
                return Ok(Value::Double(if negative { -magnitude } else { magnitude }));
            }
            _ if negative => kind::NEGATIVE_SMALL - kind,
            _ => kind - kind::POSITIVE_SMALL,
        };
        let fold = |bytes: &[u8]| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(byte ^ mask));
        let doubled = fold(self.take(usize::from(length))?);
        let whole = (doubled >> 1) as i64;
        if doubled & 1 == 0 {
            return Ok(number::int_or_long(if negative { -whole } else { whole }));
        }
        let rest = usize::from(8 - length);
        let magnitude = whole as f64 + fold(self.take(rest)?) as f64 / 2f64.powi(8 * rest as i32);
        Ok(Value::Double(if negative { -magnitude } else { magnitude }))
    }

    /// Bytes up to a zero; a zero within is followed by 0xFF.
    fn text(&mut self) -> Result<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 if self.bytes.first() == Some(&0xFF) => {
                    self.byte()?;
                    text.push(0);
                }
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                byte => text.push(byte),
            }
        }
    }
    /// Bytes up to a zero.
    fn name(&mut self) -> Result<String> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(ends_early)?;
        let name = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.byte()?;
        Ok(name)
    }
    fn document(&mut self, depth: usize) -> Result<Document> {
        let mut document = Document::new();
        while self.byte()? != 0 {
            let name = self.name()?;
            let kind = self.byte()?;
            document.push(name, self.value(kind, depth + 1)?);
        }
        Ok(document)
    }
    fn array(&mut self, depth: usize) -> Result<Vec<Value>> {
        let mut array = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(array),
                kind => array.push(self.value(kind, depth + 1)?),
            }
        }
    }
    fn binary(&mut self) -> Result<Binary> {
        let length = match self.byte()? {
            0xFF => u32::from_be_bytes(self.fixed()?) as usize,
            length => usize::from(length),
        };
        let subtype = self.byte()?;
        Ok(Binary { subtype, bytes: self.take(length)?.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{array, doc, encoding};

    #[test]
    fn keys_have_the_published_bytes() {
        let key = encode(&[
            Value::Timestamp(Timestamp::new(0x64, 2)),
            Value::Int32(2),
            Value::Int32(128),
            Value::Int32(0),
            Value::Boolean(false),
            doc! { "operationType": "insert" }.into(),
        ]);
        let text = "820000006400000002".to_string()
            + "2b042c0100296e463c6f7065726174696f6e54797065003c696e73657274000004";
        assert_eq!(encoding::hex(&key), text);
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        let values = vec![
            Value::Int32(-1),
            Value::Int32(300),
            Value::Int64(i64::MAX),
            Value::Double(-2.75),
            Value::Double(0.1),
            Value::Double(1e300),
            Value::Double(1234567.015625),
            Value::String("a\0b".into()),
            array![1, { "x": [true, (Value::Null)] }],
            Value::Binary(Binary { subtype: 0, bytes: vec![7; 300] }),
            Value::DateTime(-5),
        ];
        assert_eq!(decode(&encode(&values)).unwrap(), values);
    }

    #[test]
    fn numbers_sort_by_value() {
        let numbers =
            [-1e300, -70000.5, -70000.0, -1.5, -1.0, -0.25, 0.0, 0.25, 1.0, 1.5, 255.0, 256.5, 1e19];
        let keys: Vec<_> = numbers.iter().map(|n| encode(&[Value::Double(*n)])).collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_cut_key_overflows_and_an_unknown_kind_is_refused() {
        let key = encode(&[doc! { "a": 1 }.into()]);
        assert!(decode(&key[..key.len() - 1]).is_ok());
        for length in 1..key.len() - 1 {
            assert_eq!(decode(&key[..length]).unwrap_err().code, codes::OVERFLOW, "{length}");
        }
        assert_eq!(decode(&[0]).unwrap_err().code, 50811);
        assert_eq!(decode(&[0x46; 4000]).unwrap_err().code, codes::OVERFLOW);
    }
}
