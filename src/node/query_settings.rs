//! Query settings: what an administrator wants of the queries of a shape, whoever sends them.
//!
//! They are the cluster parameter `querySettings`, of which each node has a copy in memory ([`crate::cluster_parameters`]). A router looks a query up and sends the settings along;
//! what a shard then has is not the query as it was asked. While there are no settings, a query costs one load to find that out.

use crate::cluster_parameters::Copied;
use crate::{Node, Operation};
use document::{Doc, DocWriter, Document, Result, Value, bail, doc};
use parking_lot::RwLock;
use query::shape::{query_hash, query_shape};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The parameter's name, which is also that of the field with which a router sends settings along.
pub const PARAMETER: &str = "querySettings";

/// The settings of all shapes.
#[derive(Default)]
pub struct QuerySettings {
    any: AtomicBool,
    list: RwLock<Arc<Vec<Setting>>>,
}

/// The settings of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub hash: String,
    pub settings: Document,
    /// A query of the shape, where one is known.
    pub query: Option<Document>,
}

impl Setting {
    pub fn parse(d: &Document) -> Option<Setting> {
        Some(Setting {
            hash: d.get_str("queryShapeHash")?.to_string(),
            settings: d.get_document("settings")?.clone(),
            query: d.get_document("representativeQuery").cloned(),
        })
    }
    pub fn to_document(&self) -> Document {
        let mut out = doc! { "queryShapeHash": self.hash.as_str(), "settings": self.settings.clone() };
        if let Some(query) = &self.query {
            out.push("representativeQuery", query.clone());
        }
        out
    }
}

impl Copied for QuerySettings {
    fn name(&self) -> &'static str {
        PARAMETER
    }
    fn learn(&self, parameter: &Document) {
        let list: Vec<Setting> = parameter
            .get_array("settingsArray")
            .into_iter()
            .flatten()
            .filter_map(|v| Setting::parse(v.as_document()?))
            .collect();
        self.any.store(!list.is_empty(), Relaxed);
        *self.list.write() = Arc::new(list);
    }
}

impl QuerySettings {
    pub fn list(&self) -> Arc<Vec<Setting>> {
        self.list.read().clone()
    }

    /// The settings of a `find`, `distinct` or `aggregate`.
    ///
    /// # Errors
    /// QueryRejectedBySettings (411).
    pub fn of(&self, db: &str, command: Doc<'_>) -> Result<Option<Document>> {
        if !self.any.load(Relaxed) {
            return Ok(None);
        }
        let Some(hash) = query_hash(db, command) else { return Ok(None) };
        let list = self.list();
        let Some(found) = list.iter().find(|s| s.hash == hash) else { return Ok(None) };
        if found.settings.get_bool("reject") == Some(true) {
            bail!(QUERY_REJECTED_BY_SETTINGS, "Query rejected by admin query settings");
        }
        Ok(Some(found.settings.clone()))
    }

    /// The command with its settings; `None` where it has none.
    ///
    /// # Errors
    /// QueryRejectedBySettings (411).
    pub fn amended(&self, db: &str, command: Doc<'_>) -> Result<Option<document::DocBuf>> {
        let Some(settings) = self.of(db, command)? else { return Ok(None) };
        Ok(Some(DocWriter::build(|w| {
            command.iter().filter(|e| e.name() != PARAMETER).for_each(|e| w.element(&e));
            w.document_with(PARAMETER, |w| settings.write_fields(w));
        })))
    }

    /// `$querySettings`.
    pub fn shown(&self, spec: &Document) -> Vec<Document> {
        let debug = spec.get_bool("showDebugQueryShape") == Some(true);
        let show = |s: &Setting| {
            let mut out = s.to_document();
            if let (true, Some(query)) = (debug, &s.query) {
                let shape = query_shape(query.get_str("$db").unwrap_or(""), query.to_doc_buf().doc());
                out.push("debugQueryShape", shape.unwrap_or_default());
            }
            out
        };
        self.list().iter().map(show).collect()
    }
}

/// The indexes that settings allow on a namespace; `None` where they say nothing of it.
pub fn allowed_indexes(settings: &Document, ns: &str) -> Option<Vec<Value>> {
    let hints = settings.get_array("indexHints")?;
    hints.iter().filter_map(Value::as_document).find_map(|hint| {
        let of = hint.get_document("ns")?;
        let named = format!("{}.{}", of.get_str("db")?, of.get_str("coll")?);
        (named == ns).then(|| hint.get_array("allowedIndexes").cloned()).flatten()
    })
}

impl Node {
    /// Notes the indexes that the settings of a query allow: those that a router sent along, or those known here.
    ///
    /// # Errors
    /// QueryRejectedBySettings (411).
    pub fn heed_query_settings(&self, op: &Operation, ns: &str, command: Doc<'_>) -> Result<()> {
        let settings = match op.received.shard.is_some() {
            true => command.get_document(PARAMETER).map(Doc::to_document),
            false => self.query_settings.of(storage::split_namespace(ns).0, command)?,
        };
        if let Some(allowed) = settings.and_then(|s| allowed_indexes(&s, ns)) {
            let _ = op.allowed_indexes.set(allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_the_shape_is_rejected_or_held_to_indexes() {
        let query = |value: i32| doc! { "find": "c", "filter": { "a": value }, "$db": "d" }.to_doc_buf();
        let hash = query_hash("d", query(1).doc()).unwrap();
        let all = QuerySettings::default();
        assert_eq!(all.of("d", query(1).doc()), Ok(None));
        let hints = doc! { "indexHints": [{ "ns": { "db": "d", "coll": "c" }, "allowedIndexes": ["a_1"] }] };
        let with = |settings: Document| {
            all.learn(&doc! { "settingsArray": [{ "queryShapeHash": hash.as_str(), "settings": settings }] });
        };
        with(hints.clone());
        let found = all.of("d", query(2).doc()).unwrap().unwrap();
        assert_eq!(allowed_indexes(&found, "d.c"), Some(vec![Value::from("a_1")]));
        assert_eq!(allowed_indexes(&found, "d.other"), None);
        assert_eq!(all.of("other", query(2).doc()), Ok(None));
        with(doc! { "reject": true });
        assert_eq!(all.of("d", query(3).doc()).unwrap_err().code, 411);
    }
}
