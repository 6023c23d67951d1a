//! `encryptedFields` of `create`: which fields clients encrypt, with which keys, and what may be asked of them.
//!
//! The server keeps the document for drivers, which read it from `listCollections`; here it is checked as a whole:
//! ```text
//! {fields: [{path, keyId: UUID, bsonType?, queries?: {queryType, ..} | [{..}, {..}]}], escCollection?, ecocCollection?, eccCollection?}
//! ```

use crate::shape::Kind::{Any, Array, Bool, Number, OneOf, String, Uuid};
use crate::shape::{Shape, field, required};
use document::{Doc, Document, Result, Value, ValueRef, bail};
use query::matcher::ops::element::tag_of_alias;
use std::cmp::Ordering;
use std::collections::BTreeSet;

const WHOLE: Shape = Shape {
    name: "create.encryptedFields",
    generic: false,
    fields: &[
        field("escCollection", String),
        field("ecocCollection", String),
        field("eccCollection", String),
        field("strEncodeVersion", Number),
        required("fields", Array),
    ],
};

const FIELD: Shape = Shape {
    name: "create.encryptedFields.fields",
    generic: false,
    fields: &[
        required("keyId", Uuid),
        required("path", String),
        field("bsonType", String),
        field("queries", Any),
        field("keyVersion", Number),
    ],
};

const QUERY_TYPES: &[&str] =
    &["equality", "range", "rangePreview", "suffixPreview", "prefixPreview", "substringPreview"];

const QUERY: Shape = Shape {
    name: "create.encryptedFields.fields.queries",
    generic: false,
    fields: &[
        required("queryType", OneOf(QUERY_TYPES)),
        field("contention", Number),
        field("min", Any),
        field("max", Any),
        field("sparsity", Number),
        field("precision", Number),
        field("trimFactor", Number),
        field("strMaxLength", Number),
        field("strMinQueryLength", Number),
        field("strMaxQueryLength", Number),
        field("caseSensitive", Bool),
        field("diacriticSensitive", Bool),
    ],
};

/// The smallest value of each number in a query.
const LEAST: &[(&str, i64)] = &[
    ("contention", 0),
    ("sparsity", 1),
    ("precision", 0),
    ("trimFactor", 0),
    ("strMaxLength", 1),
    ("strMinQueryLength", 1),
    ("strMaxQueryLength", 1),
];

/// What a query on a text must say, with the real server's code for each.
const OF_TEXTS: &[(i32, &str)] = &[
    (9783402, "strMinQueryLength"),
    (9783403, "strMaxQueryLength"),
    (9783404, "caseSensitive"),
    (9783405, "diacriticSensitive"),
];

/// Refuses a definition that the real server refuses; `options` are all options of the collection.
///
/// # Errors
/// Those of the shapes, and one of the real server's numbers for each rule.
pub(super) fn check(options: &Document) -> Result<()> {
    let Some(definition) = options.get_document("encryptedFields") else { return Ok(()) };
    let definition = definition.to_doc_buf();
    WHOLE.check(definition.doc())?;
    check_fields(definition.doc())?;
    if options.get("capped").is_some_and(Value::truthy) {
        bail!(6367301, "encryptedFields is not allowed with a capped collection");
    }
    if options.contains_key("viewOn") || options.contains_key("timeseries") {
        bail!(6346401, "encryptedFields is not allowed with a view or a time-series collection");
    }
    Ok(())
}

fn check_fields(definition: Doc<'_>) -> Result<()> {
    let Some(ValueRef::Array(fields)) = definition.get("fields") else { return Ok(()) };
    let mut paths = BTreeSet::new();
    for e in fields.iter().filter(|e| !matches!(e.value(), ValueRef::Null | ValueRef::Undefined)) {
        let ValueRef::Document(field) = e.value() else {
            bail!(
                TYPE_MISMATCH,
                "BSON field '{}.{}' is the wrong type '{}', expected type 'object'",
                FIELD.name,
                e.name(),
                e.value().type_name()
            )
        };
        FIELD.check(field)?;
        let path = field.get_str("path").unwrap_or_default();
        check_path(path)?;
        if !paths.insert(path.to_string()) {
            bail!(6338402, "Duplicate paths are not allowed in encryptedFields: '{path}'");
        }
        let bson_type = field.get_str("bsonType");
        check_type(bson_type)?;
        check_queries(field.get("queries"), bson_type)?;
    }
    Ok(())
}

fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        bail!(6316402, "The path of an encrypted field cannot be empty");
    }
    if path.contains('\0') {
        bail!(9867600, "The path of an encrypted field cannot contain a null byte");
    }
    if path == "_id" || path.starts_with("_id.") {
        bail!(6316403, "The _id field and its subfields cannot be encrypted: '{path}'");
    }
    Ok(())
}

fn check_type(bson_type: Option<&str>) -> Result<()> {
    let Some(name) = bson_type else { return Ok(()) };
    let never =
        [ValueRef::Undefined.tag(), ValueRef::Null.tag(), ValueRef::MinKey.tag(), ValueRef::MaxKey.tag()];
    if never.contains(&tag_of_alias(name)?) {
        bail!(6338406, "Type '{name}' is not supported for encrypted fields");
    }
    Ok(())
}

fn check_queries(queries: Option<ValueRef<'_>>, bson_type: Option<&str>) -> Result<()> {
    let Some(queries) = queries else { return Ok(()) };
    let mut found = Vec::new();
    match queries {
        ValueRef::Document(query) => found.push(query),
        ValueRef::Array(items) => {
            for item in items.iter() {
                match item.value() {
                    ValueRef::Document(query) => found.push(query),
                    other => return Err(wrong_queries(other)),
                }
            }
        }
        other => return Err(wrong_queries(other)),
    }
    for query in &found {
        QUERY.check(*query)?;
        check_numbers(*query)?;
    }
    let text = |query: &Doc<'_>| is_text(query.get_str("queryType"));
    match found.as_slice() {
        [] => bail!(9783412, "At least one query type must be given for an encrypted field"),
        [_] => {}
        [a, b] if text(a) && text(b) && a.get_str("queryType") != b.get_str("queryType") => {}
        [_, _] => bail!(9783414, "These query types cannot be combined on an encrypted field"),
        _ => bail!(9783413, "At most two query types are allowed on an encrypted field"),
    }
    found.into_iter().try_for_each(|query| check_query(query, bson_type))
}

fn wrong_queries(v: ValueRef<'_>) -> document::Error {
    document::wrong_types(QUERY.name, v.type_name(), "[object, array]")
}

/// Numbers are integers, and not too small.
fn check_numbers(query: Doc<'_>) -> Result<()> {
    for (name, least) in LEAST {
        let Some(v) = query.get_present(name) else { continue };
        match document::number::to_i64_exact(&v.to_value()) {
            None => bail!(FAILED_TO_PARSE, "Expected an integer in field '{name}'"),
            Some(n) if n < *least => {
                bail!(BAD_VALUE, "BSON field '{name}' value must be >= {least}, actual value '{n}'")
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn is_text(query_type: Option<&str>) -> bool {
    matches!(query_type, Some("suffixPreview" | "prefixPreview" | "substringPreview"))
}

fn check_query(query: Doc<'_>, bson_type: Option<&str>) -> Result<()> {
    match query.get_str("queryType") {
        Some("range" | "rangePreview") => check_range(query, bson_type.unwrap_or_default()),
        kind if is_text(kind) => check_text(query, bson_type),
        _ => Ok(()),
    }
}

fn check_text(query: Doc<'_>, bson_type: Option<&str>) -> Result<()> {
    if bson_type != Some("string") {
        bail!(9783400, "Queries on texts need an encrypted field of bsonType 'string'");
    }
    for (code, name) in OF_TEXTS {
        if query.get_present(name).is_none() {
            return Err(document::Error::new(*code, format!("Queries on texts need '{name}'")));
        }
    }
    let length = |name: &str| query.get(name).and_then(crate::shape::to_long);
    if length("strMinQueryLength") > length("strMaxQueryLength") {
        bail!(9783406, "strMinQueryLength cannot be greater than strMaxQueryLength");
    }
    Ok(())
}

/// Bounds are of the field's type and in order, and the factor is below the type's bits.
fn check_range(query: Doc<'_>, bson_type: &str) -> Result<()> {
    let bits = match bson_type {
        "int" => 32,
        "long" | "date" | "double" => 64,
        "decimal" => 128,
        other => bail!(6775201, "Type '{other}' is not supported for range queries on encrypted fields"),
    };
    let bounds = [query.get_present("min"), query.get_present("max")];
    for bound in bounds.into_iter().flatten() {
        if bound.type_name() != bson_type {
            let found = bound.type_name();
            bail!(7018200, "The bounds of a range query are of type '{found}', the field of '{bson_type}'");
        }
    }
    if let [Some(min), Some(max)] = bounds
        && document::compare::compare(min, max) != Ordering::Less
    {
        bail!(6720005, "The minimum of a range query must be less than its maximum");
    }
    if query.get("trimFactor").and_then(crate::shape::to_long).is_some_and(|factor| factor >= bits) {
        bail!(8574000, "trimFactor must be less than the number of bits of the field, {bits}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    fn code(field: Document) -> Option<i32> {
        let mut whole = doc! { "path": "a", "keyId": (Value::uuid([7; 16])) };
        for (name, value) in field.iter() {
            whole.insert(name, value.clone());
        }
        check(&doc! { "encryptedFields": { "fields": [whole] } }).err().map(|e| e.code)
    }
    fn binary(subtype: u8, length: usize) -> Value {
        Value::Binary(document::Binary { subtype, bytes: vec![1; length] })
    }
    fn text(more: Document) -> Document {
        let mut query = doc! {
            "queryType": "prefixPreview", "strMinQueryLength": 1, "strMaxQueryLength": 9, "caseSensitive": true,
            "diacriticSensitive": true,
        };
        for (name, value) in more.iter() {
            match value {
                Value::Null => drop(query.remove(name)),
                value => query.insert(name, value.clone()),
            }
        }
        query
    }

    #[test]
    fn what_drivers_write_is_taken() {
        for good in [
            doc! {},
            doc! {"bsonType": "string", "queries": {"queryType": "equality", "contention": 4i64}},
            doc! {"bsonType": "long", "queries": [{"queryType": "range", "min": 1i64, "max": 9i64, "sparsity": 2i64, "trimFactor": 6}]},
            doc! {"bsonType": "string", "queries": [text(doc! {}), text(doc! {"queryType": "suffixPreview"})]},
        ] {
            assert_eq!(code(good.clone()), None, "{good:?}");
        }
        let key = Value::uuid([7; 16]);
        let holed = array![Value::Null, { "path": "a", "keyId": (key) }];
        check(&doc! { "encryptedFields": { "fields": (holed), "escCollection": "e" } }).unwrap();
    }

    #[test]
    fn each_rule_of_fields_has_its_code() {
        for (expected, field) in [
            (6316402, doc! {"path": ""}),
            (6316403, doc! {"path": "_id.x"}),
            (9867600, doc! {"path": "a\0b"}),
            (207, doc! {"keyId": (binary(4, 2))}),
            (14, doc! {"keyId": (binary(0, 16))}),
            (14, doc! {"bsonType": 1}),
            (2, doc! {"bsonType": "words"}),
            (6338406, doc! {"bsonType": "minKey"}),
            (40415, doc! {"more": 1}),
            (14, doc! {"queries": (Value::Null)}),
            (9783412, doc! {"queries": []}),
        ] {
            assert_eq!(code(field.clone()), Some(expected), "{field:?}");
        }
        let twice = doc! { "path": "a", "keyId": (Value::uuid([7; 16])) };
        for (expected, options) in [
            (40414, doc! {"encryptedFields": {"fields": (Value::Null)}}),
            (14, doc! {"encryptedFields": {"fields": {}}}),
            (14, doc! {"encryptedFields": {"fields": [1]}}),
            (6338402, doc! {"encryptedFields": {"fields": [(twice.clone()), (twice.clone())]}}),
            (6367301, doc! {"encryptedFields": {"fields": [(twice.clone())]}, "capped": true}),
            (6346401, doc! {"encryptedFields": {"fields": [(twice)]}, "viewOn": "c"}),
        ] {
            assert_eq!(check(&options).unwrap_err().code, expected, "{options:?}");
        }
    }

    #[test]
    fn each_rule_of_queries_has_its_code() {
        let range = |more: Document| {
            let mut query = doc! { "queryType": "range" };
            query.0.extend(more);
            query
        };
        for (expected, bson_type, query) in [
            (40414, "int", doc! {"contention": 1}),
            (2, "int", doc! {"queryType": "guess"}),
            (2, "int", range(doc! {"sparsity": 0})),
            (9, "int", range(doc! {"sparsity": 1.5})),
            (2, "int", range(doc! {"trimFactor": -1})),
            (8574000, "int", range(doc! {"trimFactor": 32})),
            (6775201, "string", range(doc! {})),
            (7018200, "int", range(doc! {"min": 1i64, "max": 2i64})),
            (6720005, "int", range(doc! {"min": 2, "max": 2})),
            (9783400, "int", text(doc! {})),
            (9783402, "string", doc! {"queryType": "suffixPreview"}),
            (9783403, "string", text(doc! {"strMaxQueryLength": (Value::Null)})),
            (9783404, "string", text(doc! {"caseSensitive": (Value::Null)})),
            (9783405, "string", text(doc! {"diacriticSensitive": (Value::Null)})),
            (9783406, "string", text(doc! {"strMinQueryLength": 10})),
            (2, "string", text(doc! {"strMinQueryLength": 0})),
            (14, "string", text(doc! {"caseSensitive": 1})),
        ] {
            let field = doc! {"bsonType": bson_type, "queries": (query)};
            assert_eq!(code(field.clone()), Some(expected), "{field:?}");
        }
        let both = doc! {"bsonType": "int", "queries": [{"queryType": "equality"}, {"queryType": "range"}]};
        assert_eq!(code(both), Some(9783414));
        let three =
            doc! {"bsonType": "string", "queries": [(text(doc! {})), (text(doc! {})), (text(doc! {}))]};
        assert_eq!(code(three), Some(9783413));
    }
}
