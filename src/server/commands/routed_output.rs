//! What a shard does of a router's `$out` or `$merge`: a row over [`node::read::routed_output`].

use super::crud::acknowledge;
use super::ddl::writable;
use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::Result;
use node::read::routed_output;

pub(super) const ROWS: &[Command] =
    &[Command::future("_shardsvrWriteOutput", Roles::MONGOD, |c, r, reply| Box::pin(run(c, r, reply)))
        .primary_only()
        .ends_with_client()
        .help("Internal command of a shard.")];

async fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    // On a node that no cluster has taken in there is nothing to compare versions with.
    context.service.members.shard()?;
    let node = writable(context)?;
    reply.fields(&routed_output::write(node, &context.operation, request.node).await?);
    acknowledge(context, reply).await
}
