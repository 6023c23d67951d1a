//! `local.system.healthlog`: what checks have found on this member, kept in a capped collection that is not replicated.

use crate::write::unit::Origin;
use crate::{Node, Operation};
use document::{Document, Value, doc};
use storage::CollectionMeta;

const NAMESPACE: &str = "local.system.healthlog";
/// Bytes that are kept of it.
const BYTES_MAX: i64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One thing that was found.
pub struct Finding<'a> {
    pub ns: &'a str,
    pub uuid: Option<[u8; 16]>,
    /// What it concerns: `cluster`, `collection` or `document`.
    pub scope: &'static str,
    pub operation: &'static str,
    pub data: Document,
}

impl Finding<'_> {
    /// Adds it to the log of this member. What cannot be written is passed over: the check goes on.
    pub async fn note(self, node: &Node, severity: Severity, message: &str) {
        let mut d = doc! {
            "_id": Value::ObjectId(node.new_object_id()), "timestamp": Value::DateTime(node.now_ms()),
            "severity": severity.name(), "msg": message, "scope": self.scope, "operation": self.operation,
            "namespace": self.ns,
        };
        if let Some(uuid) = self.uuid {
            d.push("collectionUUID", Value::uuid(uuid));
        }
        d.push("data", self.data);
        let d = d.to_doc_buf();
        let slot = node.namespaces.slot(NAMESPACE);
        let op = Operation::internal();
        let written = node.write(&op, &slot, |unit| {
            if unit.collection().is_none() {
                let options = doc! { "capped": true, "size": BYTES_MAX };
                unit.create_collection(
                    CollectionMeta::with_options(NAMESPACE.to_string(), node.new_uuid(), options),
                    false,
                );
            }
            unit.insert(d.doc(), Origin::default())?;
            unit.trim_capped()
        });
        drop(written.await);
    }
}
