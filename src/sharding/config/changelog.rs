//! `config.changelog` and `config.actionlog`: what happened to the cluster, for people and tools. Best effort: a
//! failure to record never fails what is recorded.

use super::{ACTIONLOG, CHANGELOG, ConfigServer};
use document::extended_json::format_date;
use document::{Document, Result, Value, doc};
use node::write::unit::Origin;
use node::{Node, Operation};

const BYTES: i64 = 20 * 1024 * 1024;

pub(super) async fn ensure(config: &ConfigServer) -> Result<()> {
    for ns in [CHANGELOG, ACTIONLOG] {
        if config.node.namespaces.slot(ns).read_unchecked().collection.is_none() {
            let options = doc! { "capped": true, "size": BYTES };
            node::ddl::collections::create_collection(
                &config.node,
                &Operation::internal(),
                ns,
                options,
                None,
            )
            .await?;
        }
    }
    Ok(())
}

impl ConfigServer {
    /// Appends an event of the catalog to `config.changelog`.
    pub async fn log_change(&self, what: &str, ns: &str, details: Document) {
        self.log_event(CHANGELOG, what, ns, details).await;
    }
    /// Appends an event of the balancer to `config.actionlog`.
    pub async fn log_action(&self, what: &str, ns: &str, details: Document) {
        self.log_event(ACTIONLOG, what, ns, details).await;
    }

    async fn log_event(&self, log: &str, what: &str, ns: &str, details: Document) {
        let bytes = event(&self.node, "config", what, ns, details).to_doc_buf();
        let slot = self.node.namespaces.slot(log);
        let written = self
            .node
            .write(&Operation::internal(), &slot, |unit| {
                unit.insert(bytes.doc(), Origin::default())?;
                unit.trim_capped()
            })
            .await;
        // A log that cannot be written is known to every other writer as well.
        drop(written);
    }
}

/// An event that this node, of `shard`, writes now.
pub(crate) fn event(node: &Node, shard: &str, what: &str, ns: &str, details: Document) -> Document {
    let (host, now) = (node.options.host.as_str(), node.now_ms());
    let id = format!("{host}-{}-{}", format_date(now).unwrap_or_default(), node.new_object_id().hex());
    doc! {
        "_id": id, "server": host, "shard": shard, "clientAddr": "", "time": Value::DateTime(now),
        "what": what, "ns": ns, "details": details,
    }
}
