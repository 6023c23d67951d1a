//! `analyzeShardKey` on a set and on a router: who runs the commands of [`sharding::analysis`].

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{DocBuf, DocWriter, Document, Result, bail, doc};
use futures::future::BoxFuture;
use node::auth::Action as A;
use node::{Node, Operation, ddl, read};
use sharding::analysis::{Runner, analyze};
use sharding::router::body::{Versions, batch};
use sharding::router::{Router, Task, aggregate, ddl as routed, single};
use std::sync::Arc;

pub(super) const ROWS: &[Command] =
    &[Command::future("analyzeShardKey", Roles::ALL, |c, r, reply| Box::pin(run(c, r, reply)))
        .needs(Needs::Namespace(&[A::AnalyzeShardKey]))
        .admin_only()
        .ends_with_client()
        .help("What a shard key would be like.")];

async fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let ranges = service.parameters.int("analyzeShardKeyNumRanges");
    let found = match service.role {
        Roles::STANDALONE => {
            bail!(ILLEGAL_OPERATION, "analyzeShardKey command is not supported on a standalone mongod")
        }
        Roles::ROUTER => {
            let runner = OnRouter { router: service.members.router()?, op: &context.operation, ranges };
            analyze(&runner, request.node).await?
        }
        Roles::REPLSET => {
            let runner = OnNode { node: node(context)?, op: &context.operation, ranges };
            analyze(&runner, request.node).await?
        }
        _ => bail!(ILLEGAL_OPERATION, "analyzeShardKey must be run through a mongos in a sharded cluster"),
    };
    reply.fields(&found);
    Ok(())
}

struct OnNode<'a> {
    node: &'a Arc<Node>,
    op: &'a Arc<Operation>,
    ranges: i64,
}

impl Runner for OnNode<'_> {
    fn places<'a>(&'a self) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async { Ok(vec![String::new()]) })
    }
    fn run_at<'a>(&'a self, _: &'a str, db: &'a str, command: Document) -> BoxFuture<'a, Result<DocBuf>> {
        self.run(db, command)
    }
    fn uuid<'a>(&'a self, ns: &'a str) -> BoxFuture<'a, Result<Option<[u8; 16]>>> {
        let slot = self.node.namespaces.slot(ns);
        let uuid = slot.read_unchecked().collection.as_ref().map(|c| c.uuid());
        Box::pin(async move { Ok(uuid) })
    }
    fn ranges(&self) -> i64 {
        self.ranges
    }
    fn run<'a>(&'a self, db: &'a str, mut command: Document) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            command.push("$db", db);
            let body = command.to_doc_buf();
            let request = node::Request { db, body: body.doc(), sequences: &[] };
            let mut out = vec![0; 4];
            let mut w = DocWriter::resume(&mut out);
            match request.name() {
                "aggregate" => read::aggregate::aggregate(self.node, self.op, request, &mut w).await?,
                "find" => read::find::find(self.node, self.op, request, &mut w).await?,
                "getMore" => read::get_more::get_more(self.node, self.op, request, &mut w).await?,
                _ => {
                    let slot = self.node.namespaces.slot(&request.namespace()?);
                    let indexes = ddl::list::list_indexes(self.node, self.op, &slot).await?;
                    return Ok(doc! { "cursor": { "firstBatch": indexes } }.to_doc_buf());
                }
            }
            out.push(0);
            let length = u32::try_from(out.len()).unwrap_or(u32::MAX).to_le_bytes();
            out[..4].copy_from_slice(&length);
            Ok(DocBuf::from_validated(out))
        })
    }
}

struct OnRouter<'a> {
    router: &'a Router,
    op: &'a Operation,
    ranges: i64,
}

impl Runner for OnRouter<'_> {
    fn places<'a>(&'a self) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            let shards = self.router.cluster.shards().await?;
            Ok(shards.into_iter().map(|(name, _)| name.to_string()).collect())
        })
    }
    fn run_at<'a>(&'a self, place: &'a str, db: &'a str, command: Document) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let body = command.to_doc_buf();
            let task =
                Task::new(self.router, self.op, node::Request { db, body: body.doc(), sequences: &[] });
            task.read(place, &task.own(&command, db, &Versions::NONE)).await
        })
    }
    fn uuid<'a>(&'a self, ns: &'a str) -> BoxFuture<'a, Result<Option<[u8; 16]>>> {
        Box::pin(async move {
            let (db, name) = ns.split_once('.').unwrap_or((ns, ""));
            if let Some(placement) = self.router.cluster.placement(ns).await?
                && let Some(table) = placement.table.or(placement.alone)
            {
                return Ok(Some(table.uuid));
            }
            let command = doc! { "listCollections": 1, "filter": { "name": name }, "$db": db }.to_doc_buf();
            let request = node::Request { db, body: command.doc(), sequences: &[] };
            let reply = routed::list_collections(&Task::new(self.router, self.op, request)).await?;
            let uuid = batch(reply.doc()).next().and_then(|d| d.get_document("info")?.get("uuid")?.as_uuid());
            Ok(uuid)
        })
    }
    fn ranges(&self) -> i64 {
        self.ranges
    }
    fn run<'a>(&'a self, db: &'a str, mut command: Document) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            command.push("$db", db);
            let body = command.to_doc_buf();
            let task =
                Task::new(self.router, self.op, node::Request { db, body: body.doc(), sequences: &[] });
            match task.request.name() {
                "aggregate" => aggregate::aggregate(&task).await,
                "find" => on_one_shard(&task).await,
                _ => routed::list_indexes(&task).await,
            }
        })
    }
}

/// A shard's record ids say nothing of another's documents: one that owns a chunk answers for all.
async fn on_one_shard(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let Some(placement) = task.placement(&ns).await? else {
        bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}")
    };
    let shards = placement.shards();
    let shard = shards.first().unwrap_or(&placement.primary);
    single::read(task, &ns, &placement, shard).await
}
