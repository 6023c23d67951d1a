//! What is known of a collection apart from its records, and how it stands in a checkpoint's manifest.

use document::{Collation, Document, Value};

/// A collection's identity and options.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionMeta {
    /// `database.collection`.
    pub ns: String,
    /// Its UUID; kept by renames, never used again.
    pub uuid: [u8; 16],
    /// The options as listCollections shows them (`capped`, `size`, `validator`, ...).
    pub options: Document,
    /// Whether it has the index on `_id`; false only for the few internal collections without.
    pub id_index: bool,
}

impl CollectionMeta {
    /// A collection with the index on `_id` and without options.
    pub fn new(ns: impl Into<String>, uuid: [u8; 16]) -> CollectionMeta {
        CollectionMeta { ns: ns.into(), uuid, options: Document::new(), id_index: true }
    }
    /// As [`CollectionMeta::new`], with options; `autoIndexId: false` leaves the index on `_id` out.
    pub fn with_options(ns: impl Into<String>, uuid: [u8; 16], options: Document) -> CollectionMeta {
        let id_index = options.get_bool("autoIndexId") != Some(false);
        CollectionMeta { ns: ns.into(), uuid, options, id_index }
    }
    /// The part of the namespace before the first dot.
    pub fn database(&self) -> &str {
        split_namespace(&self.ns).0
    }
    /// The part of the namespace after the first dot.
    pub fn name(&self) -> &str {
        split_namespace(&self.ns).1
    }
    /// The default collation. It was checked when the collection was created; one that an older log holds and that cannot
    /// be read orders nothing.
    pub fn collation(&self) -> Collation {
        let spec = self.options.get_document("collation");
        spec.map_or(Ok(Collation::SIMPLE), Collation::of_document).unwrap_or_default()
    }
    /// The definition of the clustered index where the collection is kept in the order of `_id`. The buckets of time series
    /// say only `true` there and name no index.
    pub fn clustered(&self) -> Option<Document> {
        match self.options.get("clusteredIndex")? {
            Value::Document(definition) => Some(definition.clone()),
            flag => flag.truthy().then(Document::new),
        }
    }
    /// Whether the clustered index is one that users see: that of buckets is not.
    pub fn lists_clustered(&self) -> bool {
        matches!(self.options.get("clusteredIndex"), Some(Value::Document(_)))
    }
    /// Whether the collection is capped.
    pub fn capped(&self) -> bool {
        self.options.get("capped").is_some_and(Value::truthy)
    }
}

/// `a.b.c` is database `a` and collection `b.c`; without a dot the collection is empty.
pub fn split_namespace(ns: &str) -> (&str, &str) {
    ns.split_once('.').unwrap_or((ns, ""))
}
