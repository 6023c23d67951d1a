//! `shutdown`: no reply; the process ends with exit code 0. A primary first hands the lead over, and clients are served as long as
//! `timeoutSecs` says.

use crate::dispatch::{After, Command, Context, Needs, Reply, Request, Roles};
use crate::quiesce::{self, Leave};
use document::{Result, doc};
use node::auth::Action as A;
use std::time::Duration;

pub const ROWS: &[Command] =
    &[Command::future("shutdown", Roles::ALL, |c, r, reply| Box::pin(run(c, r, reply)))
        .needs(Needs::Cluster(&[A::Shutdown]))
        .admin_only()
        .quiet()
        .help("Ends the process.")];

/// How long a primary waits for a member that can take over where the client does not say.
const HAND_OVER: Duration = Duration::from_secs(15);

/// Longer than anybody waits, and short enough to be added to a time.
const SECONDS_MAX: i64 = 365 * 86_400;

/// Answering would be taken for a failure: clients expect the connection to close without a byte.
async fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let (force, seconds) = (request.bool("force")?, request.integer("timeoutSecs")?);
    let attr = doc! { "force": force, "timeoutSecs": seconds };
    context.service.log.info(
        "COMMAND",
        4695400,
        &context.connection.name(),
        "Shutting down by command",
        attr,
    );
    let given = seconds.map(|seconds| Duration::from_secs(seconds.clamp(0, SECONDS_MAX) as u64));
    let how = Leave {
        hand_over: given.unwrap_or(HAND_OVER),
        force: force.unwrap_or(false),
        serve: given.unwrap_or_default(),
    };
    quiesce::leave(&context.service, how).await?;
    context.service.request_end(0);
    reply.after = After::Vanish;
    Ok(())
}
