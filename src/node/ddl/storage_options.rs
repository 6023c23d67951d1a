//! `storageEngine` and `indexOptionDefaults`: options for an engine that is not here. They are kept and shown, and refused where the real
//! server, whose engine would have to understand them, refuses them.

use document::{Doc, Document, Result, ValueRef, bail};

/// What the engine's configuration of a table may name.
const KEYS: &[&str] = &[
    "access_pattern_hint",
    "allocation_size",
    "app_metadata",
    "assert",
    "block_allocation",
    "block_compressor",
    "block_manager",
    "cache_resident",
    "checksum",
    "colgroups",
    "collator",
    "columns",
    "dictionary",
    "encryption",
    "exclusive",
    "extractor",
    "format",
    "huffman_key",
    "huffman_value",
    "ignore_in_memory_cache_size",
    "immutable",
    "import",
    "internal_item_max",
    "internal_key_max",
    "internal_key_truncate",
    "internal_page_max",
    "key_format",
    "key_gap",
    "leaf_item_max",
    "leaf_key_max",
    "leaf_page_max",
    "leaf_value_max",
    "log",
    "lsm",
    "memory_page_image_max",
    "memory_page_max",
    "os_cache_dirty_max",
    "os_cache_max",
    "prefix_compression",
    "prefix_compression_min",
    "source",
    "split_deepen_min_child",
    "split_deepen_per_child",
    "split_pct",
    "tiered_storage",
    "type",
    "value_format",
    "verbose",
    "write_timestamp_usage",
];

/// Checks both options of a collection.
///
/// # Errors
/// InvalidOptions, BadValue and FailedToParse for an engine's options, 40415 for an unknown default of indexes.
pub(super) fn check(options: &Document) -> Result<()> {
    if let Some(engines) = options.get_document("storageEngine") {
        check_engines(engines.to_doc_buf().doc())?;
    }
    let Some(defaults) = options.get_document("indexOptionDefaults") else { return Ok(()) };
    let defaults = defaults.to_doc_buf();
    for e in defaults.doc().iter() {
        match (e.name(), e.value()) {
            ("storageEngine", ValueRef::Document(engines)) => check_engines(engines)?,
            ("storageEngine", other) => bail!(
                TYPE_MISMATCH,
                "BSON field 'indexOptionDefaults.storageEngine' is the wrong type '{}', expected type 'object'",
                other.type_name()
            ),
            (name, _) => {
                bail!(IDL_UNKNOWN_FIELD, "BSON field 'indexOptionDefaults.{name}' is an unknown field.")
            }
        }
    }
    Ok(())
}

/// # Errors
/// InvalidOptions (72) for an engine that is not there, BadValue (2), TypeMismatch (14), FailedToParse (9).
pub(super) fn check_engines(engines: Doc<'_>) -> Result<()> {
    for e in engines.iter() {
        let name = e.name();
        let ValueRef::Document(of_engine) = e.value() else {
            bail!(BAD_VALUE, "'storageEngine.{name}' has to be an embedded document.")
        };
        if name != "wiredTiger" {
            bail!(INVALID_OPTIONS, "{name} is not a registered storage engine for this server");
        }
        for option in of_engine.iter() {
            match (option.name(), option.value()) {
                ("configString", ValueRef::String(text)) => check_configuration(text)?,
                ("configString", _) => bail!(TYPE_MISMATCH, "'configString' must be a string"),
                (other, _) => bail!(INVALID_OPTIONS, "'{other}' is not a supported option."),
            }
        }
    }
    Ok(())
}

/// `key=value,key=(key=value,..),..`.
fn check_configuration(text: &str) -> Result<()> {
    if text.contains('\0') {
        bail!(FAILED_TO_PARSE, "'configString' contains a null byte");
    }
    let mut depth = 0i32;
    let parts = text.split(|c| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let key = part.split(['=', ':']).next().unwrap_or_default().trim();
        if !KEYS.contains(&key) {
            bail!(BAD_VALUE, "22: Invalid argument: unknown configuration key '{key}'");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn options_are_those_of_the_one_engine() {
        let configured = |text: &str| doc! { "wiredTiger": { "configString": text } };
        for good in [
            doc! {},
            doc! { "wiredTiger": {} },
            configured(""),
            configured("block_compressor=zlib, log=(enabled=false,x=1),prefix_compression"),
        ] {
            check(&doc! { "storageEngine": (good.clone()) }).unwrap();
            check(&doc! { "indexOptionDefaults": { "storageEngine": (good) } }).unwrap();
        }
        for (code, bad) in [
            (72, doc! { "mine": {} }),
            (2, doc! { "wiredTiger": "x" }),
            (72, doc! { "wiredTiger": { "other": 1 } }),
            (2, configured("compression=best")),
            (9, configured("a\0b")),
        ] {
            assert_eq!(check(&doc! { "storageEngine": (bad.clone()) }).unwrap_err().code, code, "{bad:?}");
            let defaults = doc! { "indexOptionDefaults": { "storageEngine": (bad) } };
            assert_eq!(check(&defaults).unwrap_err().code, code);
        }
        assert_eq!(check(&doc! { "indexOptionDefaults": { "other": 1 } }).unwrap_err().code, 40415);
    }
}
