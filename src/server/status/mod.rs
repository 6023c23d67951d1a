//! `tessera status`: what a running cluster is doing, for a person at a terminal.
//!
//! Everything is asked of one router (or of a member of a set), with commands that any client may send, so it works on every
//! cluster, not only on those of this program; beside that, the nodes themselves are asked what part they have. [`gather`] makes one
//! document of the answers, [`draw`] a page of text of it, and [`crate::web`] a page of a browser.

mod asker;
mod chunks;
mod draw;
mod gather;
mod nodes;

pub(crate) use gather::{Gatherer, Map};

use crate::ask::{self, Address};
use document::Result;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two pages of `--watch`.
const PAUSE: Duration = Duration::from_secs(1);

/// The options of `tessera status`.
#[derive(clap::Args, Clone, Debug)]
pub struct Status {
    /// The address of a router or of a set, as `tessera up` prints it.
    #[arg(default_value = "mongodb://127.0.0.1:27017/")]
    pub uri: String,
    /// Show it anew every second, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
    /// Print one JSON object in place of the page.
    #[arg(long)]
    pub json: bool,
}

/// Runs `tessera status` and returns the exit code: 0, or 1 when the cluster cannot be asked.
pub fn main(status: &Status) -> i32 {
    ask::run(show(status))
}

async fn show(status: &Status) -> Result<()> {
    let address = Address::parse(&status.uri).await?;
    let mut gatherer = Gatherer::new(address.connect().await?, address.options.clone(), Arc::default());
    let mut before = None;
    loop {
        let view = gatherer.gather().await?;
        if status.json {
            println!("{}", document::extended_json::to_relaxed(&document::Value::Document(view.clone())));
        } else {
            // Home and clear, so that a page takes the place of the one before.
            let clear = if status.watch { "\x1b[H\x1b[2J" } else { "" };
            print!("{clear}{}", draw::page(&view, before.as_ref()));
        }
        if !status.watch {
            return Ok(());
        }
        before = Some(view);
        tokio::time::sleep(PAUSE).await;
    }
}
