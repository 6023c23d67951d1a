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
use document::{Document, Result, Value, err};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two pages of `--watch`.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Home and clear, so that a page takes the place of the one before.
const CLEAR: &str = "\x1b[H\x1b[2J";

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
    let map = Arc::default();
    let mut gatherer = Some(connect(&address, &map).await?);
    let mut before = None;
    loop {
        let looked = tokio::time::timeout(PATIENCE, look(&address, &map, &mut gatherer)).await;
        let looked = looked
            .unwrap_or_else(|_| Err(err!(EXCEEDED_TIME_LIMIT, "no look within {} s", PATIENCE.as_secs())));
        before = match looked {
            Ok(view) => {
                show_page(status, &view, before.as_ref());
                Some(view)
            }
            // A router or the config server may come back.
            Err(error) if status.watch => {
                gatherer = None;
                let why = format!("the cluster cannot be asked: {}", error.message);
                if status.json {
                    eprintln!("{why}")
                } else {
                    println!("{CLEAR}{why}")
                }
                None
            }
            Err(error) => return Err(error),
        };
        if !status.watch {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn connect(address: &Address, map: &Arc<Mutex<Map>>) -> Result<Gatherer> {
    Ok(Gatherer::new(address.connect().await?, address.options.clone(), map.clone()))
}

async fn look(address: &Address, map: &Arc<Mutex<Map>>, gatherer: &mut Option<Gatherer>) -> Result<Document> {
    match gatherer {
        Some(gatherer) => gatherer.gather().await,
        None => gatherer.insert(connect(address, map).await?).gather().await,
    }
}

fn show_page(status: &Status, view: &Document, before: Option<&Document>) {
    if status.json {
        return println!("{}", document::extended_json::to_relaxed(&Value::Document(view.clone())));
    }
    let clear = if status.watch { CLEAR } else { "" };
    print!("{clear}{}", draw::page(view, before));
}
