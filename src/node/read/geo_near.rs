//! The field that a `$geoNear` without `key` looks at: that of the collection's one index on places.

use crate::Node;
use document::{Document, Result, Value, bail};

/// The pipeline with the `key` of a leading `$geoNear` put in.
///
/// # Errors
/// NamespaceNotFound (26) without the collection, IndexNotFound (27) without an index on places, or with several.
pub(super) fn with_key(node: &Node, ns: &str, mut stages: Vec<Value>) -> Result<Vec<Value>> {
    let Some(Value::Document(stage)) = stages.first_mut() else { return Ok(stages) };
    let Some((_, Value::Document(spec))) = stage.0.first_mut().filter(|(name, _)| name == "$geoNear") else {
        return Ok(stages);
    };
    // One without `near` is refused where it is parsed, whatever indexes there are.
    if spec.get("key").is_none() && spec.get("near").is_some() {
        let key = indexed_field(node, ns)?;
        spec.push("key", key);
    }
    Ok(stages)
}

fn indexed_field(node: &Node, ns: &str) -> Result<String> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    let Some(collection) = &state.collection else {
        bail!(
            NAMESPACE_NOT_FOUND,
            "$geoNear requires a geo index to run, but the collection {ns} does not exist"
        );
    };
    let keys: Vec<&Document> = collection.indexes().iter().map(|i| i.spec().key()).collect();
    let fields_of = |kind: &'static str| -> Vec<&str> {
        let fields = keys.iter().flat_map(|key| key.iter().filter(|(_, v)| v.as_str() == Some(kind)));
        fields.map(|(path, _)| path).collect()
    };
    // An index on the plane goes before one on the sphere.
    for kind in ["2d", "2dsphere"] {
        match fields_of(kind).as_slice() {
            [] => {}
            [one] => return Ok(one.to_string()),
            _ => bail!(
                INDEX_NOT_FOUND,
                "There is more than one {kind} index on {ns}; unsure which to use for $geoNear"
            ),
        }
    }
    bail!(INDEX_NOT_FOUND, "$geoNear requires a 2d or 2dsphere index, but none were found")
}
