//! Metadata that the first stage of a pipeline gives: the score of a `$text`, and where and how far off a `$geoNear` found a document.
//!
//! The score is a function of the document that the leading `$match` found. So it is put into a field of the document
//! right behind that stage ([`super::hidden`]). A `$geoNear` writes the distance and the place itself.

use super::fusion::stage_of;
use super::hidden::{Hidden, asking, carried};
use super::{index_key, sort_key};
use document::{Document, Result, Value, bail, doc};

const SCORE: Hidden = Hidden { meta: "textScore", field: "__internal_textScore" };
const DISTANCE: Hidden = Hidden { meta: "geoNearDistance", field: "__internal_geoNearDistance" };
const POINT: Hidden = Hidden { meta: "geoNearPoint", field: "__internal_geoNearPoint" };

/// Whether a stage is a `$match` by `$text`.
pub fn is_text_match(stage: &Value) -> bool {
    let filter = stage.as_document().and_then(|d| d.get_document("$match"));
    filter.is_some_and(|f| crate::matcher::ops::stands_in(f.to_doc_buf().doc(), "$text"))
}

/// # Errors
/// 17313 for a `$text` behind the first stage.
pub fn refuse_later(stages: &[Value]) -> Result<()> {
    match stages.iter().skip(1).any(is_text_match) {
        true => bail!(17313, "$match with $text is only allowed as the first pipeline stage"),
        false => Ok(()),
    }
}

/// The pipeline with the metadata of its first stage, the index key of its query, or the keys of its sorts in fields, where a later stage
/// asks for them. On a router it is to be divided.
///
/// # Errors
/// Those of [`refuse_later`].
pub fn with_metadata(stages: Vec<Value>, on_router: bool) -> Result<Vec<Value>> {
    refuse_later(&stages)?;
    Ok(sort_key::with_keys(with_metadata_of_first(stages, on_router)))
}

fn with_metadata_of_first(stages: Vec<Value>, on_router: bool) -> Vec<Value> {
    let Some((first, rest)) = stages.split_first() else { return stages };
    let (wanted, mut out) = match stage_of(first) {
        Some(("$geoNear", Value::Document(spec))) => {
            let wanted = asking(rest, &[DISTANCE, POINT]);
            let out = near(spec, &wanted);
            (wanted, out)
        }
        _ if is_text_match(first) => {
            let score = Document(vec![(SCORE.field.to_string(), doc! { "$meta": SCORE.meta }.into())]);
            (asking(rest, &[SCORE]), vec![first.clone(), doc! { "$addFields": score }.into()])
        }
        _ => return index_key::with_key(stages, on_router),
    };
    if wanted.is_empty() {
        return stages;
    }
    out.extend(carried(rest.to_vec(), &wanted));
    out
}

/// A `$geoNear` that writes what is wanted into fields, with copies of what it writes elsewhere already.
fn near(spec: &Document, wanted: &[Hidden]) -> Vec<Value> {
    let (mut spec, mut copies) = (spec.clone(), Document::new());
    for hidden in wanted {
        let option = if *hidden == DISTANCE { "distanceField" } else { "includeLocs" };
        match spec.get(option) {
            None => spec.push(option, hidden.field),
            Some(Value::String(path)) => copies.push(hidden.field, format!("${path}")),
            Some(_) => {}
        }
    }
    let mut out = vec![doc! { "$geoNear": spec }.into()];
    if !copies.is_empty() {
        out.push(doc! { "$addFields": copies }.into());
    }
    out
}
