//! `findAndModify`: one document, on the shard its query names or wherever it is found ([`one_document`]).

use super::one_document::{self, Statement};
use super::task::{Retry, Task, is_stale};
use super::timeseries;
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
    let statement = Statement::FindAndModify(task, ns);
    let at = timeseries::placed(task, ns).await?;
    let Some(table) = at.placement.table.clone() else {
        return statement.send(task, &at, at.placement.home(), task.body()).await;
    };
    let aim = statement.aim(task, &at, &table)?;
    match statement.goes_to(task, &at, &aim) {
        Some(shard) => statement.send(task, &at, shard, task.body()).await,
        None => one_document::run(task, &statement).await,
    }
}
