//! What reading asks of the process around the node.

use crate::operation::{ClientInfo, SessionId};
use document::Document;

/// Implemented by the server; a node without one answers with what it knows itself.
pub trait Hooks: Send + Sync + 'static {
    /// The documents of `$currentOp` with this argument, as far as this client may see them; also the idle cursors' when it asks for them.
    fn current_op(&self, spec: &Document, client: &ClientInfo) -> Vec<Document>;
    /// `latencyStats` of a namespace: `{reads: {latency, ops}, writes, commands, transactions}`.
    fn latency_stats(&self, ns: &str, histograms: bool) -> Document;
    /// The clients' sessions that the process has seen used lately, and when they were last, in milliseconds.
    fn sessions(&self) -> Vec<(SessionId, i64)>;
    /// A transaction has ended that was open for so long and was used last by the connection of this number; `account` makes
    /// what a log line says of it.
    fn transaction_ended(&self, open: std::time::Duration, connection: i64, account: &dyn Fn() -> Document);
    /// The connection of this number wrote a document, or meant to, that its collection's validator does not accept:
    /// `{namespace, document, errInfo}`.
    fn validation_failed(&self, connection: i64, failure: Document);
}
