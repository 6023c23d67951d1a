//! Commands that one shard answers: copied there and back.

use super::body::{Placement, Versions};
use super::cluster::Call;
use super::cursor::adopt;
use super::target;
use super::task::{Retry, Task};
use crate::chunk::ShardId;
use document::{DocBuf, Result};

/// The client's command, as it is, to one shard; its reply, as it is, with its cursor kept here.
pub async fn read(task: &Task<'_>, ns: &str, placement: &Placement, shard: &ShardId) -> Result<DocBuf> {
    let body = task.forward(&[], &placement.versions(shard), |_| {});
    let brief = target::names_one(task.document_or_empty("filter"));
    let call = Call { brief, ..Call::new(shard, body.doc()) };
    let reply = match task.only_reads() {
        true => task.read_call(call).await?,
        // A pipeline may have written before its connection broke.
        false => task.write_call(call).await.map_err(|e| e.error)?,
    };
    adopt(task, ns, shard, reply)
}

/// The client's command to the primary of its database, with the database's version. `None` when there is no such
/// database.
pub async fn on_primary(task: &Task<'_>, without: &[&str]) -> Result<Option<DocBuf>> {
    let mut retry = Retry::default();
    let db = task.db();
    loop {
        let Some(placement) = task.placement(&format!("{db}.")).await? else { return Ok(None) };
        let body = task.forward(without, &placement.database_versions(), |_| {});
        match task.read(&placement.primary, &body).await {
            Ok(reply) => {
                return adopt(task, &namespace_of(reply.doc(), db), &placement.primary, reply).map(Some);
            }
            Err(e) => retry.absorb(task, db, e).await?,
        }
    }
}

/// The client's command to the config server.
pub async fn on_config(task: &Task<'_>) -> Result<DocBuf> {
    let body = task.forward(&[], &Versions::NONE, |_| {});
    let shard: ShardId = super::cluster::CONFIG.into();
    let reply = task.read(&shard, &body).await?;
    adopt(task, &namespace_of(reply.doc(), task.db()), &shard, reply)
}

/// `cursor.ns` of a reply.
fn namespace_of(reply: document::Doc<'_>, db: &str) -> String {
    let ns = reply.get_document("cursor").and_then(|c| c.get_str("ns"));
    ns.map_or_else(|| db.to_string(), str::to_string)
}
