//! `tessera up`: a whole cluster in one process.

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(name = "tessera", version, about = "A MongoDB-compatible sharded cluster in one binary")]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Start a ready cluster and stay in the foreground until Ctrl-C.
    Up(Up),
    /// Run a mongod, with mongod's own options.
    #[command(disable_help_flag = true)]
    Mongod {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run a mongos, with mongos's own options.
    #[command(disable_help_flag = true)]
    Mongos {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// The options of `tessera up`.
#[derive(clap::Args, Clone, Debug)]
pub struct Up {
    /// How many shards.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub shards: u16,
    /// Members of each shard.
    #[arg(long, default_value_t = 1)]
    pub replicas: u16,
    /// Members of the config server's set.
    #[arg(long, default_value_t = 1)]
    pub config_replicas: u16,
    /// How many routers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub routers: u16,
    /// Routers listen here and upward, the other nodes on the ports after them; 0 is any free port.
    #[arg(long, default_value_t = 27017)]
    pub port: u16,
    /// Where the data lives; without it in a temporary directory that goes with the process.
    #[arg(long)]
    pub dbpath: Option<std::path::PathBuf>,
    /// One standalone node and no cluster.
    #[arg(long, conflicts_with = "replset")]
    pub standalone: bool,
    /// One replica set of this name and no cluster.
    #[arg(long, value_name = "NAME")]
    pub replset: Option<String>,
    /// Set a parameter on every node.
    #[arg(long = "set-parameter", value_name = "K=V")]
    pub set_parameter: Vec<String>,
    /// Print one JSON object when ready, instead of the table.
    #[arg(long)]
    pub json: bool,
}

impl Up {
    /// What cannot be had yet, as a text; the process then exits with 2.
    pub fn refusal(&self) -> Option<String> {
        if self.replicas != 1 || self.config_replicas != 1 {
            return Some(
                "error: more than one replica needs replication, which does not exist yet".to_string(),
            );
        }
        if let Some(bad) = self.set_parameter.iter().find(|p| !p.contains('=')) {
            return Some(format!("error: --set-parameter expects name=value, found '{bad}'"));
        }
        None
    }
}

/// Runs `tessera up` and returns the exit code.
pub fn main(up: Up) -> i32 {
    if let Some(text) = up.refusal() {
        eprintln!("{text}");
        return 2;
    }
    eprintln!("error: not wired up yet");
    1
}
