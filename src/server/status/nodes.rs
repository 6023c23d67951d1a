//! What single nodes say of themselves: their part in a set, their load, the range deletions that wait.
//!
//! A node is asked over a connection of its own. One that refuses the login of the cluster's user (users of a router are none of a
//! shard's) is asked without it, and then only says what part it has. One that does not reply in time is unreachable, and tried anew.

use super::asker::{Asker, load};
use document::{Document, Result, codes, doc};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::client::{ConnectOptions, Connection};

/// How long a node may take.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Nodes {
    options: ConnectOptions,
    known: BTreeMap<String, Node>,
}

#[derive(Default)]
struct Node {
    asker: Option<Asker>,
    /// It refused the login.
    is_closed: bool,
}

impl Nodes {
    pub(super) fn new(mut options: ConnectOptions) -> Nodes {
        options.connect_timeout = PATIENCE;
        Nodes { options, known: BTreeMap::new() }
    }

    /// Asks all of them at once: by address, `{state, version?, connections?, operations?, rangeDeletions?}`.
    pub(super) async fn ask(&mut self, addresses: &[String]) -> BTreeMap<String, Document> {
        self.known.retain(|address, _| addresses.contains(address));
        for address in addresses {
            self.known.entry(address.clone()).or_default();
        }
        let options = &self.options;
        let asked = self.known.iter_mut().map(|(address, node)| async move {
            let said = tokio::time::timeout(PATIENCE, node.ask(address, options)).await;
            let said = said.ok().and_then(Result::ok).unwrap_or_else(|| {
                // The reply may still come; it would be taken for that of the next question.
                node.asker = None;
                doc! { "state": "unreachable" }
            });
            (address.clone(), said)
        });
        futures::future::join_all(asked).await.into_iter().collect()
    }
}

impl Node {
    async fn ask(&mut self, address: &str, options: &ConnectOptions) -> Result<Document> {
        if self.asker.is_none() {
            self.asker = Some(Asker::new(self.connect(address, options).await?));
        }
        let Some(asker) = self.asker.as_mut() else { return Ok(Document::new()) };
        if self.is_closed {
            let hello = asker.run("admin", doc! { "hello": 1 }).await?;
            return Ok(doc! { "state": state(&hello) });
        }
        let status = match asker.run("admin", doc! { "serverStatus": 1, "metrics": 0 }).await {
            Err(error) if error.code == codes::UNAUTHORIZED => {
                self.is_closed = true;
                return Ok(doc! { "state": "unreachable" });
            }
            other => other?,
        };
        let mut said = doc! { "state": status.get_document("repl").map_or("router", state) };
        if let Some(version) = status.get("version") {
            said.push("version", version.clone());
        }
        for (name, value) in load(&status, asker.sent()).iter() {
            said.push(name, value.clone());
        }
        if let Some(waiting) = status.get_path("shardingStatistics.rangeDeleterTasks") {
            said.push("rangeDeletions", waiting.clone());
        }
        Ok(said)
    }

    async fn connect(&mut self, address: &str, options: &ConnectOptions) -> Result<Connection> {
        let anonymous = ConnectOptions { credentials: None, ..options.clone() };
        if self.is_closed {
            return Connection::connect_with(address, &anonymous).await;
        }
        match Connection::connect_with(address, options).await {
            Err(error) if error.code == codes::AUTHENTICATION_FAILED => {
                self.is_closed = true;
                Connection::connect_with(address, &anonymous).await
            }
            other => other,
        }
    }
}

/// The part of a member, by its `hello`.
fn state(hello: &Document) -> &'static str {
    let is = |name: &str| hello.get_bool(name) == Some(true);
    match () {
        () if hello.get_str("msg") == Some("isdbgrid") => "router",
        () if is("isWritablePrimary") => "primary",
        () if is("secondary") => "secondary",
        () if is("arbiterOnly") => "arbiter",
        () => "other",
    }
}
