//! The node's own access to its collections, for metadata: no versions, no sessions, documents as trees.

use crate::operation::WriteConcern;
use crate::write::unit::{Origin, WriteUnit};
use crate::{Node, Operation, log_failed};
use document::{Document, Result, Value, doc};
use query::matcher::Matcher;
use std::sync::Arc;
use storage::{CollectionMeta, CollectionView};

/// Reads and writes collections of its node directly. Writes return when they are majority-committed.
#[derive(Clone)]
pub struct LocalClient {
    node: Arc<Node>,
}

impl LocalClient {
    pub fn new(node: Arc<Node>) -> LocalClient {
        LocalClient { node }
    }
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Creates the collection if it is not there, with the given indexes `(key, options)`.
    pub async fn ensure_collection(&self, ns: &str, indexes: &[(Document, Document)]) -> Result<()> {
        let slot = self.node.namespaces.slot(ns);
        let op = Operation::internal();
        let uuid = self.node.new_uuid();
        self.node
            .write(&op, &slot, |unit| {
                if unit.collection().is_none() {
                    unit.create_collection(CollectionMeta::new(ns, uuid), false);
                }
                for (key, options) in indexes {
                    unit.create_index_now(key, options)?;
                }
                Ok(())
            })
            .await?;
        self.committed(ns, &op).await
    }

    /// All documents that match, in the collection's order; none when there is no collection.
    pub fn find(&self, ns: &str, filter: &Document) -> Result<Vec<Document>> {
        let matcher = Matcher::parse(filter.to_doc_buf().doc(), &self.node.parse_context(Document::new()))?;
        let snapshot = match &self.node.namespaces.slot(ns).read_unchecked().collection {
            Some(c) => c.snapshot(),
            None => return Ok(Vec::new()),
        };
        if let Some(Value::Document(_)) | None = filter.get("_id") {
        } else if filter.len() == 1 {
            let holder = filter.to_doc_buf();
            return Ok(holder
                .get("_id")
                .and_then(|id| snapshot.find_id(id))
                .map(|(_, d)| d.to_document())
                .into_iter()
                .collect());
        }
        let mut found = Vec::new();
        let mut cursor = snapshot.records();
        let mut next = cursor.first();
        while let Some((_, d)) = next {
            if matcher.matches(d)? {
                found.push(d.to_document());
            }
            next = cursor.next();
        }
        Ok(found)
    }
    pub fn find_one(&self, ns: &str, filter: &Document) -> Result<Option<Document>> {
        Ok(self.find(ns, filter)?.into_iter().next())
    }

    pub async fn insert(&self, ns: &str, doc: &Document) -> Result<()> {
        let bytes = doc.to_doc_buf();
        self.write(ns, |unit| {
            unit.ensure_exists();
            unit.insert(bytes.doc(), Origin::default()).map(|_| ())
        })
        .await
    }
    /// Inserts, or replaces the document with this `_id`.
    pub async fn put(&self, ns: &str, doc: &Document) -> Result<()> {
        let bytes = doc.to_doc_buf();
        self.write(ns, |unit| {
            unit.ensure_exists();
            let found =
                bytes.get("_id").and_then(|id| unit.collection()?.find_id(id)).map(|(record, _)| record);
            match found {
                Some(record) => unit.replace(record, bytes.doc(), Origin::default()),
                None => unit.insert(bytes.doc(), Origin::default()).map(|_| ()),
            }
        })
        .await
    }
    /// Changes the document with this `_id` by `f`; false when there is none.
    pub async fn modify(&self, ns: &str, id: &Value, f: impl FnOnce(&mut Document)) -> Result<bool> {
        let holder = id.to_holder();
        self.write(ns, |unit| {
            let found = holder
                .get("")
                .and_then(|id| unit.collection()?.find_id(id))
                .map(|(r, d)| (r, d.to_document()));
            let Some((record, mut document)) = found else { return Ok(false) };
            f(&mut document);
            unit.replace(record, document.to_doc_buf().doc(), Origin::default())?;
            Ok(true)
        })
        .await
    }
    /// Removes the documents that match; answers how many.
    pub async fn delete(&self, ns: &str, filter: &Document) -> Result<usize> {
        let ids: Vec<Value> = self.find(ns, filter)?.iter().filter_map(|d| d.get("_id").cloned()).collect();
        self.write(ns, |unit| {
            let mut removed = 0;
            for id in &ids {
                let holder = id.to_holder();
                let found =
                    holder.get("").and_then(|id| unit.collection()?.find_id(id)).map(|(record, _)| record);
                if let Some(record) = found {
                    removed += unit.delete(record, Origin::default())? as usize;
                }
            }
            Ok(removed)
        })
        .await
    }

    async fn write<T>(&self, ns: &str, f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>) -> Result<T> {
        let slot = self.node.namespaces.slot(ns);
        let mut op = Operation::internal();
        op.write_concern = WriteConcern::majority();
        let (out, _) = self.node.write(&op, &slot, f).await?;
        self.committed(ns, &op).await?;
        Ok(out)
    }
    /// What is written to `local` stays on this member, and is done when it is durable here.
    async fn committed(&self, ns: &str, op: &Operation) -> Result<()> {
        match op.committed_position() {
            Some(p) if ns.starts_with("local.") => self.node.log.wait_durable(p).await.map_err(log_failed),
            Some(_) => self.node.wait_operation_committed(op).await,
            None => Ok(()),
        }
    }
}

impl WriteUnit<'_> {
    /// Creates the collection without options when there is none.
    pub fn ensure_exists(&mut self) {
        if self.collection().is_none() {
            let meta = CollectionMeta::new(self.slot.ns.clone(), self.node.new_uuid());
            self.create_collection(meta, false);
        }
    }
    /// Adds an index over what is there, at once: for small collections. False when it exists.
    pub fn create_index_now(&mut self, key: &Document, options: &Document) -> Result<bool> {
        let mut spec = doc! { "v": 2, "key": key.clone() };
        for (name, value) in options.iter() {
            spec.push(name, value.clone());
        }
        self.create_index_from(spec)
    }
}
