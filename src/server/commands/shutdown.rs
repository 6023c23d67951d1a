//! `shutdown`: no reply; the process ends with exit code 0.

use crate::dispatch::{After, Command, Context, Needs, Reply, Request, Roles};
use document::{Result, doc};
use node::auth::Action as A;

pub const ROWS: &[Command] = &[Command::sync("shutdown", Roles::ALL, run)
    .needs(Needs::Cluster(&[A::Shutdown]))
    .admin_only()
    .quiet()
    .help("Ends the process.")];

/// Answering would be taken for a failure: clients expect the connection to close without a byte.
fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let attr = doc! { "force": request.bool("force")?, "timeoutSecs": request.integer("timeoutSecs")? };
    context.service.log.info(
        "COMMAND",
        4695400,
        &context.connection.name(),
        "Shutting down by command",
        attr,
    );
    context.service.request_end(0);
    reply.after = After::Vanish;
    Ok(())
}
