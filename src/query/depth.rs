//! How deep documents may be nested.
//!
//! What a client sends was checked when it came in. What is computed can grow beyond that, level by level (`$reduce`, a
//! stage that wraps what the stage before it made, an update), and everything that walks a value recurses. So what is
//! computed is checked where it comes into being.
//!
//! A level takes seven bytes at least (type, empty name, length, terminator), so most documents are too small to be too
//! deep and are not walked at all.

use document::validate::DEPTH_MAX;
use document::{Doc, DocBuf, Result, Value, ValueRef, bail};

const LEVEL_BYTES_MIN: usize = 7;

/// Error: Overflow for a dotted path of more components than documents have levels.
pub fn check_path_length(components: usize) -> Result<()> {
    if components > DEPTH_MAX {
        bail!(OVERFLOW, "FieldPath is too long");
    }
    Ok(())
}

/// Hands the document on. Error: Overflow when it has more than 200 levels.
pub fn checked(d: DocBuf) -> Result<DocBuf> {
    if is_deeper(d.doc(), DEPTH_MAX) {
        bail!(OVERFLOW, "cannot nest documents deeper than {DEPTH_MAX} levels");
    }
    Ok(d)
}

/// As [`checked`], for a value that may stand in a document.
pub fn check_value(v: &Value) -> Result<()> {
    if is_value_deeper(v, DEPTH_MAX) {
        bail!(OVERFLOW, "cannot nest documents deeper than {DEPTH_MAX} levels");
    }
    Ok(())
}

/// Whether the document has more than `levels` levels, itself counted. Recurses `levels` deep at most.
fn is_deeper(d: Doc<'_>, levels: usize) -> bool {
    if d.bytes().len() < LEVEL_BYTES_MIN * levels {
        return false;
    }
    levels == 0
        || d.iter().any(|e| match e.value() {
            ValueRef::Document(inner) | ValueRef::Array(inner) => is_deeper(inner, levels - 1),
            _ => false,
        })
}

fn is_value_deeper(v: &Value, levels: usize) -> bool {
    match v {
        Value::Document(_) | Value::Array(_) if levels == 0 => true,
        Value::Document(d) => d.iter().any(|(_, v)| is_value_deeper(v, levels - 1)),
        Value::Array(a) => a.iter().any(|v| is_value_deeper(v, levels - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryContext;
    use crate::computed::Computed;
    use crate::matcher::Matcher;
    use crate::update::Update;
    use document::doc;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Int32(1), |v, i| match i % 2 {
            0 => doc! { "": v }.into(),
            _ => Value::Array(vec![v]),
        })
    }

    #[test]
    fn two_hundred_levels_are_allowed_and_one_more_is_not() {
        assert!(check_value(&nested(200)).is_ok());
        assert_eq!(check_value(&nested(201)).unwrap_err().code, 15);
        assert!(checked(doc! { "a": nested(199) }.to_doc_buf()).is_ok());
        assert_eq!(checked(doc! { "a": nested(200) }.to_doc_buf()).unwrap_err().code, 15);
        assert_eq!(
            checked(doc! { "text": "x".repeat(9000), "a": nested(200) }.to_doc_buf()).unwrap_err().code,
            15
        );
    }

    #[test]
    fn nothing_computed_grows_beyond_that() {
        let ctx = QueryContext::at(0);
        let reduce = |times: i32, step: Value| {
            let reduce: Value =
                doc! { "$reduce": { "input": { "$range": [0, times] }, "initialValue": 1, "in": step } }
                    .into();
            Computed::parse(&reduce, &ctx).unwrap().eval(Doc::empty()).map_err(|e| e.code)
        };
        assert!(reduce(200, doc! { "a": "$$value" }.into()).is_ok());
        assert_eq!(reduce(100_000, doc! { "a": "$$value" }.into()), Err(15));
        assert_eq!(
            reduce(100_000, doc! { "$zip": { "inputs": ["$$value"] } }.into()),
            Err(34468),
            "1 is no array"
        );
        assert_eq!(reduce(100_000, doc! { "$map": { "input": [1], "in": "$$value" } }.into()), Err(15));

        let wrap: Value = doc! { "$set": { "q": { "a": "$q" } } }.into();
        let wrapped = |times: usize| {
            let update = Update::parse(&Value::Array(vec![wrap.clone(); times]), &[], &ctx).unwrap();
            update.apply(doc! { "q": 1 }.to_doc_buf().doc(), None, false).map(|_| ()).map_err(|e| e.code)
        };
        assert_eq!((wrapped(199), wrapped(200)), (Ok(()), Err(15)));
    }

    #[test]
    fn paths_are_no_longer_than_documents_are_deep() {
        let ctx = QueryContext::at(0);
        let long = vec!["a"; 100_000].join(".");
        let code = |r: Result<()>| r.unwrap_err().code;
        let spec = document::Document(vec![(long.clone(), Value::Int32(1))]);
        let buffer = spec.to_doc_buf();
        assert_eq!(code(crate::sort::SortSpec::parse(buffer.doc()).map(drop)), 15);
        assert_eq!(code(Computed::parse(&Value::from(format!("${long}")), &ctx).map(drop)), 15);
        let everything = Matcher::parse(Doc::empty(), &ctx).unwrap();
        assert_eq!(code(crate::projection::Projection::parse(buffer.doc(), &everything, &ctx).map(drop)), 15);
        let set: Value = doc! { "$set": spec.clone() }.into();
        assert_eq!(code(Update::parse(&set, &[], &ctx).map(drop)), 15);
        let equality = Matcher::parse(buffer.doc(), &ctx).unwrap();
        let set = Update::parse(&doc! { "$set": { "x": 1 } }.into(), &[], &ctx).unwrap();
        assert_eq!(code(set.upsert_document(&equality).map(drop)), 15);
    }
}
