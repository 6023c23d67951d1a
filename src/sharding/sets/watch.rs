//! The task that keeps asking one member of a set who it is.

use super::{Pace, Set};
use crate::remote::Transport;
use document::{DocBuf, Result, doc, err};
use runtime::Instant;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Asks until the set is used no more. The set ends the task itself when the member is none any more.
pub(super) async fn run(set: Weak<Set>, transport: Arc<dyn Transport>, host: String, ask_now: Arc<Notify>) {
    let Some(pace) = set.upgrade().map(|set| set.pace) else { return };
    loop {
        let asked = Instant::now();
        let reply = ask(&*transport, &host, doc! { "hello": 1 }, pace.hello).await;
        let ping_ms = asked.elapsed().as_secs_f64() * 1000.0;
        let Some(held) = set.upgrade() else { return };
        if !held.is_used() {
            return;
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(_) => {
                held.missed(&host);
                drop(held);
                drop(tokio::time::timeout(pace.retry, ask_now.notified()).await);
                continue;
            }
        };
        held.heard(&host, reply.doc(), Some(ping_ms));
        drop(held);
        tokio::select! {
            outcome = changes(&*transport, &host, reply, pace) => {
                let Some(held) = set.upgrade() else { return };
                match outcome {
                    Ok(reply) => held.heard(&host, reply.doc(), None),
                    Err(_) => held.missed(&host),
                }
            }
            () = ask_now.notified() => {}
        }
    }
}

/// The reply to a `hello` that waits until something differs from `known`.
async fn changes(transport: &dyn Transport, host: &str, known: DocBuf, pace: Pace) -> Result<DocBuf> {
    let Some(version) = known.doc().get_document("topologyVersion") else {
        tokio::time::sleep(pace.patience).await;
        return Ok(known);
    };
    let command = doc! {
        "hello": 1, "topologyVersion": version.to_document(), "maxAwaitTimeMS": pace.patience.as_millis() as i64,
    };
    ask(transport, host, command, pace.patience + pace.hello).await
}

async fn ask(
    transport: &dyn Transport,
    host: &str,
    command: document::Document,
    limit: Duration,
) -> Result<DocBuf> {
    let call = transport.call(host, "admin", command.to_doc_buf());
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => Err(err!(NETWORK_TIMEOUT, "{host} did not say in time who it is")),
    }
}
