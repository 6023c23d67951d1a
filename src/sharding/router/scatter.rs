//! One command to several shards at once.

use super::body::Placement;
use super::body::cursor_id;
use super::collation;
use super::cursor::kill_on_shards;
use super::target;
use super::task::{Task, is_stale};
use crate::chunk::ShardId;
use document::{Doc, DocBuf, Error, Result};
use futures::future::join_all;

/// The shards that a read with this filter concerns.
pub fn targets(task: &Task<'_>, placement: &Placement, filter: Doc<'_>) -> Result<Vec<ShardId>> {
    let Some(table) = &placement.table else { return Ok(vec![placement.home().clone()]) };
    if let Some(key) = target::equality_key(&table.key, filter, collation::is_simple(task.body(), table)) {
        return Ok(vec![table.find(&key).shard.clone()]);
    }
    Ok(target::filter(table, filter, &collation::context(task, task.body(), table)?).shards)
}

/// Sends to each shard the command that `make` gives for it and waits for all. The error, if there is one, is a stale one
/// where possible: that can be repaired.
pub async fn read_all(
    task: &Task<'_>,
    shards: &[ShardId],
    make: impl Fn(&ShardId) -> DocBuf,
) -> Result<Vec<(ShardId, DocBuf)>> {
    let sent = shards.iter().map(|shard| {
        let body = make(shard);
        async move { (shard.clone(), task.read(shard, &body).await) }
    });
    let (mut replies, mut errors) = (Vec::with_capacity(shards.len()), Vec::new());
    for (shard, reply) in join_all(sent).await {
        match reply {
            Ok(reply) => replies.push((shard, reply)),
            Err(e) => errors.push(e),
        }
    }
    match worst(errors) {
        None => Ok(replies),
        Some(e) => {
            let open = replies.iter().map(|(s, r)| (s.clone(), cursor_id(r.doc()))).collect();
            if let Ok(ns) = task.request.namespace() {
                kill_on_shards(&task.router.cluster, &ns, open);
            }
            Err(e)
        }
    }
}

fn worst(errors: Vec<Error>) -> Option<Error> {
    let stale = errors.iter().position(is_stale);
    errors.into_iter().nth(stale.unwrap_or(0))
}
