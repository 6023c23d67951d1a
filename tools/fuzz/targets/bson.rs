//! One document: the validator, then every way of reading what it let through.
#![no_main]
use document::validate::{Limits, validate};
use document::{Doc, ValueRef};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Views are total: on bytes that nobody checked they end early and do not panic.
    let unchecked = walk(Doc::from_validated(data), 0);
    if validate(data, Limits::MESSAGE).is_ok() {
        let doc = Doc::from_validated(data);
        assert_eq!(walk(doc, 0), unchecked);
        let tree = doc.to_document();
        let again = tree.to_doc_buf();
        assert!(validate(again.bytes(), Limits::MESSAGE).is_ok(), "what we write, we accept");
    }
});

/// The number of elements in all.
fn walk(doc: Doc<'_>, depth: usize) -> usize {
    if depth > 220 {
        return 0;
    }
    let mut count = 0;
    for element in doc.iter() {
        count += 1 + element.name().len().min(1);
        count += match element.value() {
            ValueRef::Document(d) | ValueRef::Array(d) | ValueRef::JavaScriptWithScope(_, d) => {
                walk(d, depth + 1)
            }
            _ => 0,
        };
    }
    count
}
