//! `dbCheck`: compares the documents and indexes of a set's members, in the background.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::Result;
use node::auth::Action as A;

pub const ROWS: &[Command] = &[Command::sync("dbCheck", Roles::MONGOD, db_check)
    .needs(Needs::Database(&[A::DbCheck]))
    .shape(&node::db_check::request::SHAPE)
    .primary_only()
    .help("Compares what the members of a set hold; local.system.healthlog says what was found.")];

fn db_check(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let every = context.service.parameters.int("dbCheckHealthLogEveryNBatches").unsigned_abs();
    node::db_check::begin(node(context)?, request.node, every)
}
