//! Comparing whole result sets: exactly, or after putting aside what two correct answers may differ in.

use super::encode::to_bson;
use super::native::native_of;
use crate::errors::throw_code;
use document::{Doc, Document, Value as Bson, codes, compare, number};
use rquickjs::{Ctx, Function, Result, Value};

pub(super) fn register(ctx: &Ctx<'_>) -> Result<()> {
    let globals = ctx.globals();
    globals.set("_resultSetsEqualUnordered", Function::new(ctx.clone(), equal_unordered)?)?;
    globals.set("_resultSetsEqualNormalized", Function::new(ctx.clone(), equal_normalized)?)
}

/// The same documents, in whatever order.
fn equal_unordered<'js>(ctx: Ctx<'js>, a: Value<'js>, b: Value<'js>) -> Result<bool> {
    let (mut a, mut b) = (documents(&ctx, &a)?, documents(&ctx, &b)?);
    let by_bytes = |d: &Document| d.to_vec();
    a.sort_by_cached_key(by_bytes);
    b.sort_by_cached_key(by_bytes);
    Ok(a == b)
}

/// The same documents when the order of documents, fields and array elements, and the types of numbers, do not count.
fn equal_normalized<'js>(ctx: Ctx<'js>, a: Value<'js>, b: Value<'js>) -> Result<bool> {
    let normal = |list: Vec<Document>| {
        let mut list: Vec<Bson> = list.into_iter().map(|d| normalize(Bson::Document(d))).collect();
        list.sort_by(compare::compare_values);
        list
    };
    let (a, b) = (normal(documents(&ctx, &a)?), normal(documents(&ctx, &b)?));
    Ok(a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| compare::values_equal(x, y)))
}

fn documents<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<Document>> {
    let no_set = || throw_code(ctx, codes::BAD_VALUE, "a result set is an array of documents");
    let array = value.as_object().filter(|object| object.is_array()).ok_or_else(no_set)?;
    let length: f64 = array.get("length")?;
    let mut documents = Vec::new();
    for i in 0..length as u32 {
        let item: Value = array.get(i)?;
        let object = item.as_object().filter(|_| native_of(&item).is_none()).ok_or_else(no_set)?;
        let bytes = to_bson(ctx, object)?;
        documents.push(Doc::from_validated(&bytes).to_document());
    }
    Ok(documents)
}

/// Sorts the fields of a document and of every document in it by name.
pub(super) fn sort_fields(document: &mut Document) {
    document.0.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, value) in &mut document.0 {
        sort_within(value);
    }
}

fn sort_within(value: &mut Bson) {
    match value {
        Bson::Document(inner) => sort_fields(inner),
        Bson::Array(items) => items.iter_mut().for_each(sort_within),
        _ => {}
    }
}

fn normalize(value: Bson) -> Bson {
    match value {
        Bson::Document(inner) => {
            let mut fields: Vec<_> = inner.into_iter().map(|(name, v)| (name, normalize(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(fields.into_iter().collect())
        }
        Bson::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(normalize).collect();
            items.sort_by(compare::compare_values);
            Bson::Array(items)
        }
        // Sums of doubles depend on their order: fifteen digits are what two of them can be asked to share.
        number if number.is_number() => match number::as_f64(&number) {
            Some(v) if v.is_finite() => Bson::Double(format!("{v:.14e}").parse().unwrap_or(v)),
            _ => number,
        },
        other => other,
    }
}
