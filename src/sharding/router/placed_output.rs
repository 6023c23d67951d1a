//! `$out` to a collection that is not sharded and stands where moveCollection has put it.
//!
//! ```text
//! open     a collection beside the target, with its options and indexes, which the catalog places on the same shard
//! insert   the documents, in batches
//! end      it is renamed over the target, if that is still the collection of the beginning
//! give up  it is dropped
//! ```
//! The catalog knows both collections, so each step is the change of the catalog, or the write, that a user would ask for.

use super::body::{Placement, batch};
use super::cluster::Call;
use super::ddl::on_primary;
use super::task::{Retry, Task, is_stale};
use super::write::first_error;
use crate::chunk::ShardId;
use document::{Doc, DocBuf, Document, Error, Result, Value, bail, codes, doc};
use query::pipeline::Namespace;

/// What clients look for when the target is of a kind that `$out` does not replace.
const OUT_TO_CAPPED: i32 = 17152;

/// A collection beside the target.
#[derive(Clone)]
pub(super) struct Beside {
    db: String,
    name: String,
    home: ShardId,
    /// The collection that it will replace.
    target: [u8; 16],
}

/// What the target is.
struct Target {
    uuid: [u8; 16],
    options: Document,
    indexes: Vec<Document>,
}

impl Beside {
    /// # Errors
    /// QueryPlanKilled (175) when there is no target any more; 17152 for a capped one.
    pub(super) async fn open(task: &Task<'_>, ns: &Namespace, placement: &Placement) -> Result<Beside> {
        let home = placement.home().clone();
        let target = describe(task, ns, &home).await?;
        let name = node::read::output_name(runtime::uuid());
        let beside = Beside { db: ns.db.clone(), name, home, target: target.uuid };
        let made = beside.make(task, target).await;
        if made.is_err() {
            beside.give_up(task).await;
        }
        made.map(|()| beside)
    }

    async fn make(&self, task: &Task<'_>, target: Target) -> Result<()> {
        let mut create = doc! {
            "_shardsvrCreateCollection": self.name.as_str(), "shardKey": doc! { "_id": 1 }, "unsplittable": true,
            "dataShard": &*self.home,
        };
        create.0.extend(target.options.0);
        self.change(task, create).await?;
        if !target.indexes.is_empty() {
            let indexes = doc! { "_shardsvrCreateIndexes": self.name.as_str(), "indexes": target.indexes };
            self.change(task, indexes).await?;
        }
        Ok(())
    }

    /// A change of the catalog, by the coordinator on the database's primary.
    async fn change(&self, task: &Task<'_>, command: Document) -> Result<()> {
        let changed = on_primary(task, &self.db, &self.db, command).await;
        task.router.cluster.forget(Some(&self.ns()));
        match changed? {
            Some(_) => Ok(()),
            None => bail!(QUERY_PLAN_KILLED, "the database {} was dropped while $out wrote to it", self.db),
        }
    }

    fn ns(&self) -> String {
        format!("{}.{}", self.db, self.name)
    }

    /// `more`: what the client's command says of its writes. Returns the write concern's error, if there was one.
    pub(super) async fn insert(
        &self,
        task: &Task<'_>,
        documents: &[DocBuf],
        more: &Document,
    ) -> Result<Option<Document>> {
        if documents.is_empty() {
            return Ok(None);
        }
        let mut command = doc! { "insert": self.name.as_str(), "ordered": true };
        command.0.extend(more.iter().map(|(name, value)| (name.to_string(), value.clone())));
        let documents: Vec<Doc<'_>> = documents.iter().map(DocBuf::doc).collect();
        let mut retry = Retry::default();
        loop {
            let placement = task.placement_for_write(&self.ns()).await?;
            let body = task.own(&command, &self.db, &placement.versions(placement.home()));
            let call =
                Call { sequence: Some(("documents", &documents)), ..Call::new(placement.home(), body.doc()) };
            let failed = match task.write_call(call).await {
                Ok(reply) => match first_error(reply.doc()) {
                    None => return Ok(reply.doc().get_document("writeConcernError").map(Doc::to_document)),
                    // A part is there already.
                    Some(e) if is_stale(&e) && reply.doc().get_i64("n") != Some(0) => {
                        bail!(QUERY_PLAN_KILLED, "{} moved while $out wrote to it", self.ns())
                    }
                    Some(e) => e,
                },
                Err(e) => e.error,
            };
            match is_stale(&failed) {
                true => retry.absorb(task, &self.ns(), failed).await?,
                false => return Err(failed),
            }
        }
    }

    /// Puts it in the target's place.
    ///
    /// # Errors
    /// QueryPlanKilled (175) when the target is another than at the beginning.
    pub(super) async fn put_in_place(&self, task: &Task<'_>, target: &Namespace) -> Result<()> {
        let to = target.to_string();
        let rename = doc! {
            "_shardsvrRenameCollection": self.name.as_str(), "to": to.as_str(), "dropTarget": Value::uuid(self.target),
        };
        let renamed = self.change(task, rename).await;
        task.router.cluster.forget(Some(&to));
        match renamed {
            Err(e) if e.code == codes::COLLECTION_UUID_MISMATCH => {
                bail!(QUERY_PLAN_KILLED, "{to} was dropped or renamed while $out wrote to it")
            }
            done => done,
        }
    }

    /// Drops it, though the operation may have been interrupted. Where that fails it stays, under a name that tells what it is.
    pub(super) async fn give_up(&self, task: &Task<'_>) {
        let Ok(Some(placement)) = task.router.cluster.placement(&format!("{}.", self.db)).await else {
            return;
        };
        let command =
            doc! { "_shardsvrDropCollection": self.name.as_str(), "writeConcern": doc! { "w": "majority" } };
        let body = task.own(&command, &self.db, &placement.database_versions());
        // What the pipeline failed with is what the client learns.
        let _ = task.router.cluster.call(Call::new(&placement.primary, body.doc())).await;
        task.router.cluster.forget(Some(&self.ns()));
    }
}

async fn describe(task: &Task<'_>, ns: &Namespace, home: &str) -> Result<Target> {
    let list = async |command: Document| {
        let body = task.own(&command, &ns.db, &Default::default());
        let reply = task.read(home, &body).await?;
        Ok::<_, Error>(batch(reply.doc()).map(Doc::to_document).collect::<Vec<_>>())
    };
    let name = ns.collection.as_str();
    let found = list(doc! { "listCollections": 1, "filter": { "name": name } }).await?;
    let uuid = found.first().and_then(|d| d.get_path("info.uuid")).and_then(Value::as_uuid);
    let (Some(found), Some(uuid)) = (found.first(), uuid) else {
        bail!(QUERY_PLAN_KILLED, "{ns} was dropped while $out wrote to it")
    };
    let options = found.get_document("options").cloned().unwrap_or_default();
    if options.get("capped").is_some_and(Value::truthy) {
        return Err(Error::new(
            OUT_TO_CAPPED,
            format!("namespace '{ns}' is capped so it can't be used for $out"),
        ));
    }
    let mut indexes = list(doc! { "listIndexes": name, "cursor": { "batchSize": 1000 } }).await?;
    indexes.retain(|index| index.get_str("name") != Some("_id_"));
    Ok(Target { uuid, options, indexes })
}
