//! `tessera step-down SHARD`: the primary of a shard of a running cluster hands over to another member.

use crate::ask::{Address, Server};
use document::{Result, Value, bail, doc, err};
use protocol::selection::PRIMARY;
use sharding::sets::Sets;
use std::sync::Arc;
use wire::client::{Pool, PoolOptions};

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
    let address = Address::parse(&options.server.uri).await?;
    let map =
        address.connect().await?.run("admin", doc! { "getShardMap": 1 }.to_doc_buf()).await?.to_document();
    let connection = map.get_document("map").and_then(|m| m.get(&options.shard)).and_then(Value::as_str);
    let Some(connection) = connection else { bail!(SHARD_NOT_FOUND, "Shard {} not found", options.shard) };
    let pool = Pool::new(PoolOptions { connect: address.options, ..PoolOptions::default() });
    let sets = Sets::new(Arc::new(pool.clone()));
    let before = sets.find(connection, &PRIMARY).await?;
    let command = doc! {
        "replSetStepDown": options.seconds, "secondaryCatchUpPeriodSecs": options.seconds.min(10), "force": options.force,
    };
    pool.run(&before, "admin", command.to_doc_buf()).await?;
    sets.note_failure(connection, &before, &err!(PRIMARY_STEPPED_DOWN, "it was asked to"), false);
    Ok((before, sets.find(connection, &PRIMARY).await?))
}
