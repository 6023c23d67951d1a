//! Cluster parameters that a node heeds while it runs: copies in memory of documents in `config.clusterParameters`.
//!
//! Members are told by an observer of that collection; routers ask the config server with every ping.

use crate::Node;
use crate::observer::WriteObserver;
use document::{Doc, Document, ValueRef};
use std::sync::Arc;

/// Where cluster parameters are kept, by their names.
pub const COLLECTION: &str = "config.clusterParameters";

/// The copy of one.
pub trait Copied: Send + Sync + 'static {
    /// Its `_id`.
    fn name(&self) -> &'static str;
    /// Takes over the parameter's document; an empty one where nothing is set.
    fn learn(&self, parameter: &Document);
}

/// Tells a copy of what is written.
struct Watch(Arc<dyn Copied>);

impl WriteObserver for Watch {
    fn inserted(&self, _: &str, doc: Doc<'_>) {
        if doc.get_str("_id") == Some(self.0.name()) {
            self.0.learn(&doc.to_document());
        }
    }
    fn updated(&self, ns: &str, new: Doc<'_>) {
        self.inserted(ns, new);
    }
    fn deleted(&self, _: &str, old: Doc<'_>) {
        if old.get_str("_id") == Some(self.0.name()) {
            self.0.learn(&Document::new());
        }
    }
}

impl Node {
    /// Begins to follow the parameters, from what is there.
    pub(crate) fn watch_cluster_parameters(&self) {
        self.load_cluster_parameters();
        self.observers.add(COLLECTION, Arc::new(Watch(self.query_settings.clone())));
        self.observers.add(COLLECTION, Arc::new(Watch(self.default_time.clone())));
        self.observers.add(COLLECTION, Arc::new(Watch(self.cardinality.clone())));
    }
    /// Reads them again, where the collection was not written but exchanged.
    pub(crate) fn load_cluster_parameters(&self) {
        self.load(&*self.query_settings);
        self.load(&*self.default_time);
        self.load(&*self.cardinality);
    }
    fn load(&self, copy: &dyn Copied) {
        let slot = self.namespaces.slot(COLLECTION);
        let state = slot.read_unchecked();
        let found = state.collection.as_ref().and_then(|c| c.find_id(ValueRef::String(copy.name())));
        copy.learn(&found.map(|(_, d)| d.to_document()).unwrap_or_default());
    }
}
