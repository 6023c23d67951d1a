//! `analyzeShardKey` on a set and on a router: who runs the commands of [`sharding::analysis`].

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{DocBuf, DocWriter, Document, Result, bail, doc};
use futures::future::BoxFuture;
use node::auth::Action as A;
use node::{Node, Operation, ddl, read};
use sharding::analysis::{Runner, analyze};
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
    let found = match service.role {
        Roles::STANDALONE => {
            bail!(ILLEGAL_OPERATION, "analyzeShardKey command is not supported on a standalone mongod")
        }
        Roles::ROUTER => {
            let runner = OnRouter { router: service.members.router()?, op: &context.operation };
            analyze(&runner, request.node).await?
        }
        Roles::REPLSET => {
            analyze(&OnNode { node: node(context)?, op: &context.operation }, request.node).await?
        }
        _ => bail!(ILLEGAL_OPERATION, "analyzeShardKey must be run through a mongos in a sharded cluster"),
    };
    reply.fields(&found);
    Ok(())
}

struct OnNode<'a> {
    node: &'a Arc<Node>,
    op: &'a Arc<Operation>,
}

impl Runner for OnNode<'_> {
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
}

impl Runner for OnRouter<'_> {
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
