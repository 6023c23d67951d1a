//! The `collMod` entry, applied: options of the collection, and of one index.

use document::{Document, Result, Value, bail};

use crate::collection::Collection;
use crate::index::IndexSpec;

/// Applies `{collMod, index?: {name | keyPattern, hidden?, expireAfterSeconds?, unique?, prepareUnique?, ...}, option...}`.
/// Errors: IndexNotFound (27), CannotConvertIndexToUnique (359).
pub fn apply_coll_mod(collection: &mut Collection, command: &Document) -> Result<()> {
    if let Some(index) = command.get_document("index") {
        modify_index(collection, index)?;
    }
    let mut options = collection.meta().options.clone();
    for (name, value) in command.iter() {
        let name = match name {
            "collMod" | "index" => continue,
            "cappedSize" => "size",
            "cappedMax" => "max",
            other => other,
        };
        match value {
            Value::Document(empty) if name == "validator" && empty.is_empty() => {
                options.remove(name);
            }
            Value::String(off) if name == "expireAfterSeconds" && off == "off" => {
                options.remove(name);
            }
            value => options.insert(name, value.clone()),
        }
    }
    if options != collection.meta().options {
        collection.set_options(options);
    }
    Ok(())
}

fn modify_index(collection: &mut Collection, index: &Document) -> Result<()> {
    let name = index_name(collection, index)?;
    if index.get("unique").is_some_and(Value::truthy) {
        collection.make_index_unique(&name)?;
    }
    for option in ["hidden", "prepareUnique"] {
        if let Some(value) = index.get(option) {
            let value = value.truthy().then_some(Value::Boolean(true));
            collection.set_index_option(&name, option, value)?;
        }
    }
    if let Some(seconds) = index.get("expireAfterSeconds") {
        collection.set_index_option(&name, "expireAfterSeconds", Some(int_or_itself(seconds)))?;
    }
    Ok(())
}

fn index_name(collection: &Collection, index: &Document) -> Result<String> {
    if let Some(name) = index.get_str("name") {
        return Ok(name.to_string());
    }
    let pattern = index.get_document("keyPattern");
    let is_meant = |spec: &IndexSpec| pattern.is_some_and(|pattern| spec.has_key(pattern));
    match collection.known_indexes().iter().find(|i| is_meant(i.spec())) {
        Some(found) => Ok(found.spec().name().to_string()),
        None => bail!(INDEX_NOT_FOUND, "cannot find index for ns {}", collection.ns()),
    }
}

/// Seconds as an index definition keeps them.
fn int_or_itself(seconds: &Value) -> Value {
    seconds.as_i64().and_then(|n| i32::try_from(n).ok()).map_or_else(|| seconds.clone(), Value::Int32)
}
