//! update of a time series collection: the meta field, of all measurements that have one value of it.

use super::{Series, refuse_transaction};
use crate::write::update::{Done, UpdateStatement, run};
use crate::{Node, Operation};
use document::{Doc, Document, Result, Value, ValueRef, bail};
use query::timeseries::Options;

/// Runs one statement, which the buckets can carry out as it is said of their meta field.
///
/// # Errors
/// InvalidOptions (72) for everything else.
pub(crate) async fn update(
    node: &Node,
    op: &Operation,
    series: &Series,
    raw: Doc<'_>,
    variables: &Document,
    stmt: i32,
) -> Result<Done> {
    refuse_transaction(op, series, "update")?;
    let translated = translated(raw, &series.options)?.to_doc_buf();
    let statement = UpdateStatement::parse(node, &series.buckets, translated.doc(), variables)?;
    run(node, op, &series.buckets, &statement, stmt, true).await
}

fn translated(raw: Doc<'_>, options: &Options) -> Result<Document> {
    if raw.get("upsert").is_some_and(|v| v.truthy()) {
        bail!(INVALID_OPTIONS, "Cannot perform an upsert on a time-series collection");
    }
    if !raw.get("multi").is_some_and(|v| v.truthy()) {
        bail!(INVALID_OPTIONS, "Cannot perform a non-multi update on a time-series collection");
    }
    if options.meta.is_none() {
        bail!(INVALID_OPTIONS, "Cannot perform an update on a time-series collection that has no metaField");
    }
    let mut out = Document::new();
    for e in raw.iter() {
        match (e.name(), e.value()) {
            ("q", ValueRef::Document(q)) => out.push("q", query(&q.to_document(), options)?),
            ("u", ValueRef::Document(u)) => out.push("u", operators(&u.to_document(), options)?),
            ("u", _) => {
                bail!(INVALID_OPTIONS, "Cannot perform an update with a pipeline on a time-series collection")
            }
            ("hint", _) => {
                bail!(INVALID_OPTIONS, "Cannot use a hint with an update on a time-series collection")
            }
            (name, value) => out.push(name, value.to_value()),
        }
    }
    Ok(out)
}

fn on_meta(path: &str, options: &Options) -> Result<String> {
    match options.below_meta(path) {
        Some(rest) => Ok(format!("meta{rest}")),
        None => bail!(
            INVALID_OPTIONS,
            "Cannot perform an update on a time-series collection on the field '{path}', which is not the metaField '{}'",
            options.meta.as_deref().unwrap_or_default()
        ),
    }
}

fn query(q: &Document, options: &Options) -> Result<Document> {
    let mut out = Document::new();
    for (name, value) in q.iter() {
        match (name, value) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                let each = list.iter().map(|v| match v {
                    Value::Document(d) => query(d, options).map(Value::Document),
                    other => Ok(other.clone()),
                });
                out.push(name, Value::Array(each.collect::<Result<_>>()?));
            }
            (name, value) => out.push(on_meta(name, options)?, value.clone()),
        }
    }
    Ok(out)
}

fn operators(u: &Document, options: &Options) -> Result<Document> {
    let mut out = Document::new();
    for (operator, fields) in u.iter() {
        let Value::Document(fields) = fields else {
            bail!(INVALID_OPTIONS, "Cannot perform a replacement update on a time-series collection")
        };
        if !operator.starts_with('$') || operator == "$rename" {
            bail!(INVALID_OPTIONS, "Cannot use '{operator}' in an update on a time-series collection");
        }
        let mut renamed = Document::new();
        for (path, value) in fields.iter() {
            renamed.push(on_meta(path, options)?, value.clone());
        }
        out.push(operator, renamed);
    }
    if out.is_empty() {
        bail!(INVALID_OPTIONS, "Cannot perform a replacement update on a time-series collection");
    }
    Ok(out)
}
