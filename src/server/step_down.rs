//! `tessera step-down SHARD`: the primary of a shard of a running cluster hands over to another member.

use crate::ask::{Address, Server};
use document::{Result, doc};

/// The options of `tessera step-down`.
#[derive(clap::Args, Clone, Debug)]
pub struct StepDown {
    /// The shard's name, or `config`.
    pub shard: String,
    /// A router of the cluster.
    #[command(flatten)]
    pub server: Server,
    /// How long the member does not stand for election.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Step down even if no other member has caught up.
    #[arg(long)]
    pub force: bool,
}

/// Runs `tessera step-down` and returns the exit code.
pub fn main(options: &StepDown) -> i32 {
    crate::ask::run(async {
        let (before, after) = run(options).await?;
        println!("{}: {before} stepped down, {after} is primary", options.shard);
        Ok(())
    })
}

/// The primaries before and after.
async fn run(options: &StepDown) -> Result<(String, String)> {
    let command = doc! {
        "tesseraStepDown": options.shard.as_str(), "seconds": options.seconds, "force": options.force,
    };
    let mut router = Address::parse(&options.server.uri).await?.connect().await?;
    let reply = router.run("admin", command.to_doc_buf()).await?;
    let host = |name: &str| reply.doc().get_str(name).unwrap_or("").to_string();
    Ok((host("before"), host("after")))
}
