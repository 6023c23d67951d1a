//! The error of a taken key, with the real server's text and members.
//!
//! `E11000 duplicate key error collection: db.c index: a_1 dup key: { a: 1 }`, and `keyPattern` and `keyValue`, which
//! drivers show. The values are written as the real server writes documents into messages. Where the index has a
//! collation the text says so and shows the sort keys of strings, in hexadecimal: `collation: {..} dup key: { a: "0x29" }`.

use document::{Doc, Document, Error, ValueRef, err, shell};

use super::keys;
use super::spec::{FieldKind, IndexSpec};

/// DuplicateKey (11000) for the key `key`, one of those of `doc` in the index.
pub(crate) fn duplicate_key(ns: &str, spec: &IndexSpec, doc: Doc<'_>, key: &[u8]) -> Error {
    let mut values = Document::new();
    let mut encoded = Vec::new();
    let found = keys::for_each_key(spec, doc, &mut |components| {
        encoded.clear();
        keys::encode(spec, components, &mut encoded);
        if encoded == key && values.is_empty() {
            values = key_value(spec, components);
        }
        Ok(())
    });
    debug_assert!(found.is_ok(), "the keys of this document were computed a moment ago");
    let mut text = format!("E11000 duplicate key error collection: {ns} index: {} ", spec.name());
    let mut info = Document::new();
    info.push("keyPattern", spec.key().clone());
    if let Some(collation) = spec.collation().document() {
        text.push_str("collation: ");
        text.push_str(&shell::document(collation));
        text.push(' ');
        values = values.iter().map(|(name, v)| (name.to_string(), spec.collation().shown(v))).collect();
        info.push("keyValue", values.clone());
        info.push("collation", collation.clone());
    } else {
        info.push("keyValue", values.clone());
    }
    text.push_str("dup key: ");
    text.push_str(&shell::document(&values));
    err!(DUPLICATE_KEY, "{text}").with_info(info)
}

fn key_value(spec: &IndexSpec, components: &[ValueRef<'_>]) -> Document {
    let mut values = Document::new();
    for (field, value) in spec.fields().iter().zip(components) {
        match field.kind {
            FieldKind::Hashed => values.push(field.path.as_str(), keys::hashed(spec, *value)),
            _ => values.push(field.path.as_str(), value.to_value()),
        }
    }
    values
}
