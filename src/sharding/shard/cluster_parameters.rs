//! Cluster parameters, as the config server has this shard set them: it has looked at what they say already.

use super::ShardRole;
use document::{Doc, Document, Result, Timestamp, Value, ValueRef, bail, doc};
use node::cluster_parameters::COLLECTION;

/// `{_shardsvrSetClusterParameter: {<name>: {...}}, clusterParameterTime: timestamp}`, kept unless what is here is as new.
///
/// # Errors
/// FailedToParse (9) for another shape; ShardingStateNotInitialized (203); a failed log.
pub async fn set(role: &ShardRole, body: Doc<'_>) -> Result<Document> {
    role.require_identity()?;
    let Some((name, fields)) = named(body) else {
        bail!(FAILED_TO_PARSE, "_shardsvrSetClusterParameter takes one parameter, a document");
    };
    let given = body.get("clusterParameterTime").and_then(|v| v.as_timestamp());
    let time = given.unwrap_or_else(|| role.node.cluster_time());
    let known = role.local.find_one(COLLECTION, &doc! { "_id": name })?.and_then(|d| time_of(&d));
    if known.is_some_and(|known| known >= time) {
        return Ok(Document::new());
    }
    let mut parameter = doc! { "_id": name, "clusterParameterTime": time };
    parameter.0.extend(fields.to_document().0);
    role.local.put(COLLECTION, &parameter).await?;
    Ok(Document::new())
}

fn named(body: Doc<'_>) -> Option<(&str, Doc<'_>)> {
    let Some(ValueRef::Document(set)) = body.iter().next().map(|e| e.value()) else { return None };
    let mut parameters = set.iter();
    let (first, others) = (parameters.next()?, parameters.next());
    Some((first.name(), first.value().as_document().filter(|_| others.is_none())?))
}

fn time_of(parameter: &Document) -> Option<Timestamp> {
    parameter.get("clusterParameterTime").and_then(Value::as_timestamp)
}
