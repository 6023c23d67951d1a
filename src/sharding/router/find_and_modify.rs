//! `findAndModify`: one document, on the shard its query names or wherever it is found ([`one_document`]).

use super::collation;
use super::one_document::{self, Statement};
use super::target;
use super::task::{Retry, Task, is_stale};
use document::{DocBuf, Result, bail, codes};

pub async fn find_and_modify(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    node::write::shapes::FIND_AND_MODIFY.check_command(task.request.body, task.request.sequences)?;
    let mut retry = Retry::default();
    loop {
        match attempt(task, &ns).await {
            Err(e) if is_stale(&e) => {
                retry.absorb(task, &ns, e).await?;
                if super::timeseries::sharded_if_known(task, &ns).await?.is_some() {
                    bail!(
                        NOT_IMPLEMENTED,
                        "findAndModify on the sharded time series {ns} is not implemented"
                    );
                }
            }
            Err(e) if e.code == codes::WOULD_CHANGE_OWNING_SHARD => {
                return one_document::run(task, &Statement::FindAndModify(task, &ns)).await;
            }
            done => return done,
        }
    }
}

async fn attempt(task: &Task<'_>, ns: &str) -> Result<DocBuf> {
    let statement = Statement::FindAndModify(task, ns);
    let placement = task.placement_for_write(ns).await?;
    let Some(table) = placement.table.clone() else {
        return statement.send(task, &placement, placement.home(), task.body()).await;
    };
    let filter = task.document_or_empty("query");
    let upsert = task.get("upsert").is_some_and(|v| v.truthy());
    let aim = target::filter(&table, filter, &collation::context(task, task.body(), &table)?);
    match aim.shards.as_slice() {
        [shard] if aim.key.is_some() || !upsert => statement.send(task, &placement, shard, task.body()).await,
        _ => one_document::run(task, &statement).await,
    }
}
