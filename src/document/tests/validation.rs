//! What the validator of documents refuses.

use super::generate::document;
use crate::validate::{Limits, validate, validate_prefix};
use crate::{Doc, DocBuf, DocWriter, Document, Value, ValueRef, codes, doc};
use proptest::prelude::*;

fn accepts(bytes: &[u8]) -> bool {
    validate(bytes, Limits::USER).is_ok()
}

/// Every byte belongs to an element that decodes to its own type.
fn reads_whole(d: Doc<'_>) {
    let mut length = 5;
    for e in d {
        length += e.whole().len();
        assert_eq!(e.value().tag(), e.tag());
        assert!(std::str::from_utf8(e.name_bytes()).is_ok());
        match e.value() {
            ValueRef::Document(d) | ValueRef::Array(d) | ValueRef::JavaScriptWithScope(_, d) => {
                reads_whole(d)
            }
            _ => {}
        }
    }
    assert_eq!(length, d.bytes().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_we_write_is_valid_and_reads_back(d in document()) {
        let bytes = d.to_vec();
        prop_assert!(validate(&bytes, Limits::USER).is_ok());
        let again = Doc::from_validated(&bytes).to_document();
        prop_assert_eq!(again.to_vec(), bytes.clone());
        let mut copy = Vec::new();
        DocWriter::write(&mut copy, |w| {
            for e in Doc::from_validated(&bytes) {
                w.value(e.name(), e.value());
                assert_eq!(e.value().truthy(), e.value().to_value().truthy());
            }
        });
        prop_assert_eq!(&copy, &bytes);
        for (name, _) in d.iter() {
            // The first of repeated names, as the owned tree finds it.
            let found = Doc::from_validated(&bytes).get(name).map(|v| v.to_value().to_holder());
            prop_assert_eq!(found, d.get(name).map(Value::to_holder));
        }
        prop_assert!(Doc::from_validated(&bytes).get("a\0").is_none());
        prop_assert!(bson::Document::from_reader(bytes.as_slice()).is_ok());
        prop_assert!(validate(&bytes[..bytes.len() - 1], Limits::USER).is_err());
        let mut longer = bytes.clone();
        longer.push(0);
        prop_assert!(validate(&longer, Limits::USER).is_err());
        prop_assert_eq!(validate_prefix(&longer, Limits::USER).ok(), Some(bytes.len()));
    }

    #[test]
    fn accepted_mutants_read_without_surprises(
        d in document(), mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = d.to_vec();
        for (at, to) in mutations {
            let at = at.index(bytes.len());
            bytes[at] = if to < 128 { to % 32 } else { to };
        }
        if accepts(&bytes) {
            reads_whole(Doc::from_validated(&bytes));
            prop_assert!(bson::Document::from_reader(bytes.as_slice()).is_ok(), "{:x?}", bytes);
        }
        // Whatever the bytes, reading them ends.
        let buffer = DocBuf::from_validated(bytes);
        let _ = buffer.to_document();
    }

    #[test]
    fn arbitrary_bytes_are_never_read_out_of_bounds(tail in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = (tail.len() as u32 + 4).to_le_bytes().to_vec();
        bytes.extend_from_slice(&tail);
        if accepts(&bytes) {
            reads_whole(Doc::from_validated(&bytes));
        }
        let _ = Doc::from_validated(&bytes).to_document();
        let _ = validate(&tail, Limits::USER);
    }
}

/// A document around one element's bytes.
fn around(element: &[u8]) -> Vec<u8> {
    let mut bytes = (element.len() as u32 + 5).to_le_bytes().to_vec();
    bytes.extend_from_slice(element);
    bytes.push(0);
    bytes
}

#[test]
fn lies_are_refused() {
    let refused: &[&[u8]] = &[
        b"\x02a\0\0\0\0\0\0",                          // string of length 0
        b"\x02a\0\xff\xff\xff\xff\0",                  // negative length
        b"\x02a\0\x02\0\0\0xx",                        // no terminator
        b"\x02a\0\x03\0\0\0\xff\xfe\0",                // not UTF-8
        b"\x02a\xff\0\x02\0\0\0x\0",                   // name not UTF-8
        b"\x02a\0\x20\0\0\0x\0",                       // longer than the document
        b"\x08a\0\x02",                                // boolean 2
        b"\x20a\0\x02",                                // unknown type
        b"\x10a\0\x01\0",                              // short int
        b"\x10aaaa",                                   // name without end
        b"\x03a\0\x04\0\0\0\0",                        // document below 5 bytes
        b"\x03a\0\x06\0\0\0\0",                        // one byte too long
        b"\x03a\0\x06\0\0\0\0\0",                      // terminator too early
        b"\x03a\0\x05\0\0\0\x01",                      // no terminator
        b"\x05a\0\xff\xff\xff\xff\0",                  // negative binary
        b"\x05a\0\x04\0\0\0\x02\x01\0\0\0",            // old binary: inner length
        b"\x05a\0\x02\0\0\0\x02\0\0",                  // old binary too short
        b"\x0ba\0a\0b",                                // options without end
        b"\x0ca\0\x02\0\0\0x\0short",                  // pointer without id
        b"\x0fa\0\x10\0\0\0\x02\0\0\0x\0\x05\0\0\0\0", // code with scope: total one too large
        b"\x0fa\0\x05\0\0\0\0",                        // code with scope too short
        b"\x0fa\0\xff\xff\xff\xff\x02\0\0\0x\0\x05\0\0\0\0",
        b"\0", // a terminator inside
    ];
    for element in refused {
        let error = validate(&around(element), Limits::USER).expect_err(&format!("{element:x?}"));
        assert_eq!(error.code, codes::INVALID_BSON, "{element:x?}");
    }
    let accepted: &[&[u8]] = &[
        b"\x0fa\0\x0f\0\0\0\x02\0\0\0x\0\x05\0\0\0\0",
        b"\x05a\0\x05\0\0\0\x02\x01\0\0\0x",
        b"\x0aa\0\x0aa\0",
        b"\x04a\0\x08\0\0\0\x0a7\0\0",
        b"\x0a\0",
        b"\x02a\0\x03\0\0\0\0x\0",
    ];
    for element in accepted {
        validate(&around(element), Limits::USER).unwrap_or_else(|e| panic!("{element:x?} {e}"));
    }
    for bytes in
        [&b""[..], b"\x05\0\0", b"\x04\0\0\0", b"\xff\xff\xff\xff\0", b"\x05\0\0\0\x01", b"\x06\0\0\0\0\0"]
    {
        assert_eq!(validate(bytes, Limits::USER).unwrap_err().code, codes::INVALID_BSON, "{bytes:x?}");
    }
}

fn nested(levels: usize) -> Vec<u8> {
    let mut v = Value::Document(doc! {});
    for i in 1..levels {
        v = match i % 3 {
            0 => Value::Array(vec![v]),
            1 => Value::Document(doc! {"a": v}),
            _ => match v {
                Value::Document(scope) => Value::Document(doc! {"a": Value::Document(scope)}),
                v => Value::Document(doc! {"a": v}),
            },
        };
    }
    match v {
        Value::Document(d) => d.to_vec(),
        v => doc! {"a": v}.to_vec(),
    }
}

#[test]
fn depth_is_bounded() {
    // 200 and 201 leave no array outermost.
    assert!(accepts(&nested(200)));
    assert_eq!(validate(&nested(202), Limits::USER).unwrap_err().code, codes::OVERFLOW);
    // A million levels are refused as quickly as they are met.
    let mut bytes = Vec::new();
    let depth = 100_000usize;
    for i in 0..depth {
        bytes.extend_from_slice(&(((depth - i) * 8 + 5) as u32).to_le_bytes());
        bytes.extend_from_slice(b"\x03a\0");
    }
    bytes.extend_from_slice(b"\x05\0\0\0\0");
    bytes.resize(bytes.len() + depth, 0);
    assert_eq!(validate(&bytes, Limits::USER).unwrap_err().code, codes::OVERFLOW);
}

#[test]
fn sizes_are_bounded() {
    let large = doc! {"a": "x".repeat(16 * 1024 * 1024 - 13 - 5)}.to_vec();
    let error = validate(&large, Limits { bytes_max: large.len() - 1, ..Limits::USER }).unwrap_err();
    assert_eq!(error.code, codes::BSON_OBJECT_TOO_LARGE);
    assert!(validate(&large, Limits { bytes_max: large.len(), ..Limits::USER }).is_ok());
}

#[test]
fn a_million_empty_names_are_read() {
    let bytes = around(&b"\x0a\0".repeat(1_000_000));
    assert!(accepts(&bytes));
}

#[test]
fn the_macro_builds_what_it_says() {
    let d: Document = doc! {"a": 1, "b": {"c": [1, "x", {"d": 2.5}, [true]]}, "e": (1i64 << 40)};
    assert_eq!(d.len(), 3);
    assert_eq!(d.get_path("b.c").and_then(Value::as_array).map(Vec::len), Some(4));
    let bytes = d.to_doc_buf();
    assert_eq!(bytes.to_document(), d);
    assert_eq!(bytes.doc().get_i64("e"), Some(1 << 40));
    assert_eq!(
        bytes.doc().get_document("b").unwrap().get("c").unwrap().as_array().unwrap().iter().count(),
        4
    );
}
