//! `findAndModify`: one document, on the shard its query names or wherever it is found ([`one_document`]).

use super::body::Placement;
use super::cluster::Call;
use super::collation;
use super::one_document::{self, Statement, put_moved};
use super::target;
use super::task::{Retry, Task, is_stale};
use crate::chunk::ShardId;
use document::{DocBuf, Result, codes};

pub async fn find_and_modify(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    node::write::shapes::FIND_AND_MODIFY.check_command(task.request.body, task.request.sequences)?;
    let mut retry = Retry::default();
    loop {
        match attempt(task, &ns).await {
            Err(e) if is_stale(&e) => retry.absorb(task, &ns, e).await?,
            Err(e) if e.code == codes::WOULD_CHANGE_OWNING_SHARD => {
                return one_document::run(task, &Statement::FindAndModify(task, &ns)).await;
            }
            done => return done,
        }
    }
}

async fn attempt(task: &Task<'_>, ns: &str) -> Result<DocBuf> {
    let placement = task.placement_for_write(ns).await?;
    let Some(table) = placement.table.clone() else {
        return as_it_is(task, ns, &placement, placement.home()).await;
    };
    let filter = task.document_or_empty("query");
    let upsert = task.get("upsert").is_some_and(|v| v.truthy());
    let aim = target::filter(&table, filter, &collation::context(task, task.body(), &table)?);
    match aim.shards.as_slice() {
        [shard] if aim.key.is_some() || !upsert => as_it_is(task, ns, &placement, shard).await,
        _ => one_document::run(task, &Statement::FindAndModify(task, ns)).await,
    }
}

async fn as_it_is(task: &Task<'_>, ns: &str, placement: &Placement, shard: &ShardId) -> Result<DocBuf> {
    let body = task.forward(&[], &placement.versions(shard), |w| {
        if task.in_transaction() {
            w.bool("mayMoveDocument", true);
        }
    });
    let brief = target::names_one(task.document_or_empty("query"));
    let call = Call { brief, ..Call::new(shard, body.doc()) };
    let reply = task.write_call(call).await.map_err(|e| e.error)?;
    put_moved(task, ns, reply).await
}
