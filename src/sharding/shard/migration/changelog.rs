//! What happened, for `config.changelog`. Nobody waits for it to succeed.

use crate::remote::{Target, majority};
use crate::shard::ShardRole;
use document::{Document, Value, doc};

impl ShardRole {
    /// Writes an entry on the config server. A failure is passed over: the log is for people.
    pub(crate) async fn log_change(&self, what: &str, ns: &str, details: Document) {
        let Some(identity) = self.identity() else { return };
        let host = self.node.options.host.clone();
        let now = self.node.now_ms();
        let entry = doc! {
            "_id": format!("{host}-{now}-{}", self.node.new_object_id().hex()), "server": host.as_str(),
            "shard": &*identity.name, "clientAddr": "", "time": Value::DateTime(now), "what": what, "ns": ns,
            "details": details,
        };
        let command = doc! { "insert": "changelog", "documents": vec![entry], "writeConcern": majority() };
        let _ = self.remote.run(Target::Config, "config", command.to_doc_buf()).await;
    }
}
