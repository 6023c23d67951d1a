//! The hash of hashed indexes and hashed shard keys, as the real server computes it, so that chunk bounds written by
//! tools and pre-split plans mean the same keys here. DO NOT CHANGE: hashes are stored in indexes and chunk bounds.
//!
//! ```text
//! hash     := first 8 bytes, as int64le, of MD5(seed:int32le = 0, element(value, without name))
//! element  := rank:int32le [name 0x00] content
//! content  := int64le                          numbers: truncated toward zero, clamped; NaN is 0
//!           | [code 0x00] element* end         documents, arrays, code with scope; names included
//!           | the value's BSON bytes           everything else
//! end      := 0:int32le                        the terminator counts as an element without name and value
//! ```
//! The rank is the canonical type, with -1 for MinKey and 0 for undefined.

use crate::compare::canonical_type;
use crate::{Doc, DocWriter, Value, ValueRef};
use md5::{Digest, Md5};

pub fn hash64(v: ValueRef<'_>) -> i64 {
    hash64_with_seed(v, 0)
}

/// As [`hash64`], for the test command that takes a seed. Indexes and shard keys use 0.
pub fn hash64_with_seed(v: ValueRef<'_>, seed: i32) -> i64 {
    let mut md5 = Md5::new();
    md5.update(seed.to_le_bytes());
    update(&mut md5, v, None);
    let digest: [u8; 16] = md5.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

pub fn hash64_value(v: &Value) -> i64 {
    match v.as_scalar() {
        Some(v) => hash64(v),
        None => v.to_holder().get("").map_or(0, hash64),
    }
}

/// An MD5 over bytes given in parts.
#[derive(Clone, Default)]
pub struct Checksum(Md5);

impl Checksum {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    /// The sum so far, in hexadecimal.
    pub fn hex(self) -> String {
        crate::encoding::hex(&self.0.finalize())
    }
}

fn rank(tag: u8) -> i32 {
    match tag {
        0xFF => -1,
        0x06 => 0,
        tag => canonical_type(tag) as i32,
    }
}

fn update(md5: &mut Md5, v: ValueRef<'_>, name: Option<&[u8]>) {
    md5.update(rank(v.tag()).to_le_bytes());
    if let Some(name) = name {
        md5.update(name);
        md5.update([0]);
    }
    match v {
        ValueRef::Document(d) | ValueRef::Array(d) => update_fields(md5, d),
        ValueRef::JavaScriptWithScope(code, scope) => {
            md5.update(code);
            md5.update([0]);
            update_fields(md5, scope);
        }
        v => match integer(v) {
            Some(n) => md5.update(n.to_le_bytes()),
            None => {
                // `{"": v}` is a length, a tag, an empty name, the value and the terminator.
                let holder = DocWriter::build(|w| w.value("", v));
                let bytes = holder.bytes();
                md5.update(&bytes[6..bytes.len() - 1]);
            }
        },
    }
}

fn update_fields(md5: &mut Md5, d: Doc<'_>) {
    for e in d {
        update(md5, e.value(), Some(e.name_bytes()));
    }
    md5.update(0i32.to_le_bytes());
}

fn integer(v: ValueRef<'_>) -> Option<i64> {
    match v {
        ValueRef::Int32(n) => Some(n as i64),
        ValueRef::Int64(n) => Some(n),
        // The real server keeps an old accident here: 2^63 itself wraps, while everything above is clamped.
        ValueRef::Double(9223372036854775808.0) => Some(i64::MIN),
        ValueRef::Double(n) => Some(n as i64),
        ValueRef::Decimal128(n) => Some(n.to_i64_saturating()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::hash64_value;
    use crate::{Binary, CodeWithScope, DbPointer, Decimal128, ObjectId, Regex, Value, array, doc};

    /// Vectors published with the real server's own tests.
    #[test]
    fn hashes_are_those_of_the_real_server() {
        let oid = ObjectId([1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12]);
        let code = "func f() { return 1; }".to_string();
        let binary = |subtype, bytes: Vec<u8>| Value::Binary(Binary { subtype, bytes });
        let regex = |p: &str, o: &str| Value::from(Regex { pattern: p.to_string(), options: o.to_string() });
        let vectors: Vec<(Value, i64)> = vec![
            (42.into(), -944302157085130861),
            (42.123.into(), -944302157085130861),
            (42i64.into(), -944302157085130861),
            (0.into(), 4854801880128277513),
            (0.456.into(), 4854801880128277513),
            (f64::NAN.into(), 4854801880128277513),
            (1.into(), 5902408780260971510),
            ((-1).into(), 1140205862565771219),
            ((-1.789).into(), 1140205862565771219),
            (i32::MIN.into(), 6165898260261354870),
            (i32::MAX.into(), 1143184177162245883),
            (f64::MAX.into(), 921523596458303250),
            (i64::MAX.into(), 921523596458303250),
            (f64::MIN.into(), 4532067210535695462),
            (i64::MIN.into(), 4532067210535695462),
            (Value::MinKey, 7961148599568647290),
            (Value::MaxKey, 5504842513779440750),
            (Value::Undefined, 40158834000849533),
            ("abc".into(), 8478485326885698097),
            (Value::Symbol("abc".into()), 8478485326885698097),
            ("".into(), 2049396243249673340),
            (doc! {"a": "abc", "b": 123i64}.into(), 4771603801758380216),
            (doc! {}.into(), 7980500913326740417),
            (array!["bar", "baz", "qux"], -2938911267422831539),
            (array![], 8849948234993459283),
            (binary(0, vec![0, 1, 2, 3, 4, 6]), 7252465090394235301),
            (binary(128, vec![0, 1, 2, 3, 4, 6]), 5736670452907618262),
            (binary(4, (0..16).collect()), 6084661258071355978),
            (oid.into(), -5588663249627035708),
            (ObjectId([0; 12]).into(), -4293118519463489418),
            (true.into(), 6405873908747105701),
            (false.into(), 6289544573401934092),
            (Value::DateTime(0x5566778811223344), 4476222765095560467),
            (Value::DateTime(0), -1178696894582842035),
            (regex("mongodb", ""), -7275792090268217043),
            (regex(".*", "i"), 7095855029187981886),
            (DbPointer { ns: "c".into(), id: oid }.into(), 940175826736461384),
            (DbPointer { ns: "db.c".into(), id: oid }.into(), 2426768198104018194),
            (Value::JavaScript(code.clone()), 6861638109178014270),
            (CodeWithScope { code, scope: doc! {"c": true} }.into(), 501342939894575968),
        ];
        for (value, expected) in vectors {
            assert_eq!(hash64_value(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn decimals_hash_as_the_integer_they_truncate_to() {
        let d = |s| Value::Decimal128(Decimal128::parse(s).unwrap());
        assert_eq!(hash64_value(&d("42.123")), hash64_value(&Value::Int32(42)));
        assert_eq!(hash64_value(&d("NaN")), hash64_value(&Value::Int32(0)));
        assert_eq!(
            hash64_value(&Value::Double(9223372036854775808.0)),
            hash64_value(&Value::Int64(i64::MIN))
        );
    }
}
