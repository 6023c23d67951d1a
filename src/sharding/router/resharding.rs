//! reshardCollection and its kin: to the coordinator on the database's primary.

use super::body::ok_reply;
use super::ddl::{forget_with_buckets, full_namespace, internal, on_primary};
use super::shapes;
use super::task::Task;
use document::{DocBuf, Document, Result, bail, doc};
use node::shape::Shape;

/// Sends the client's command as `name` for an operation of this kind.
async fn to_coordinator(task: &Task<'_>, shape: &Shape, name: &str, kind: &str) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    shape.check_command(task.request.body, task.request.sequences)?;
    if document::is_internal_database(db) {
        bail!(
            ILLEGAL_OPERATION,
            "Can't run {} on a collection of the '{db}' database: {ns}",
            task.request.name()
        );
    }
    let mut command = internal(task, name, collection);
    command.insert("provenance", kind);
    let reply = on_primary(task, db, db, command).await;
    forget_with_buckets(task, &ns);
    match reply? {
        Some(_) => Ok(ok_reply(Document::new())),
        None => bail!(NAMESPACE_NOT_FOUND, "database {db} not found"),
    }
}

macro_rules! coordinated {
    ($($function:ident $shape:ident $internal:literal $kind:literal;)*) => {
        $(#[doc = concat!("To the primary as `", $internal, "`, for a ", $kind, ".")]
        pub async fn $function(task: &Task<'_>) -> Result<DocBuf> {
            to_coordinator(task, &shapes::$shape, $internal, $kind).await
        })*
    };
}
coordinated! {
    reshard_collection RESHARD_COLLECTION "_shardsvrReshardCollection" "reshardCollection";
    move_collection MOVE_COLLECTION "_shardsvrReshardCollection" "moveCollection";
    unshard_collection UNSHARD_COLLECTION "_shardsvrReshardCollection" "unshardCollection";
    abort_reshard_collection ABORT_RESHARD_COLLECTION "_shardsvrAbortReshardCollection" "reshardCollection";
    abort_move_collection ABORT_MOVE_COLLECTION "_shardsvrAbortReshardCollection" "moveCollection";
    abort_unshard_collection ABORT_UNSHARD_COLLECTION "_shardsvrAbortReshardCollection" "unshardCollection";
    commit_reshard_collection COMMIT_RESHARD_COLLECTION "_shardsvrCommitReshardCollection" "reshardCollection";
    cleanup_reshard_collection CLEANUP_RESHARD_COLLECTION "_shardsvrCleanupReshardCollection" "reshardCollection";
    untrack_collection UNTRACK_COLLECTION "_shardsvrUntrackUnsplittableCollection" "untrackUnshardedCollection";
}

/// `createUnsplittableCollection`, for tests: an empty tracked collection on the shard that `dataShard` names.
pub async fn create_unsplittable(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    shapes::CREATE_UNSPLITTABLE.check_command(task.request.body, task.request.sequences)?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    task.placement_for_write(&ns).await?;
    let mut command = doc! { "_shardsvrCreateCollection": collection, "shardKey": doc! { "_id": 1 } };
    command.0.extend(internal(task, "", "").into_iter().skip(1));
    command.insert("unsplittable", true);
    let reply = on_primary(task, db, db, command).await;
    task.router.cluster.forget(Some(&ns));
    reply?;
    Ok(ok_reply(Document::new()))
}
