//! Gathers the status again and again, for all visitors at once, and remembers how the sizes of shards went.
//!
//! With visitors it does so every second, without them every five; when gathering takes long, the pauses grow with it. When the
//! cluster cannot be asked, or not in time, it connects anew, and the page shows why. The map outlives the connection, so that its
//! versions never begin again.

use crate::ask;
use crate::status::{Gatherer, Map};
use document::{Document, Result, Value, err};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use wire::client::ConnectOptions;

/// Between two looks while somebody watches, and while nobody does.
const PAUSE: Duration = Duration::from_secs(1);
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// A pause is at least so many times what the look took; while somebody watches, no longer than this for it.
const REST: u32 = 5;
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Looks that are remembered; when there are more, every second one goes.
const SAMPLES: usize = 600;

/// Whom to ask.
pub(crate) struct Source {
    pub(crate) hosts: Vec<String>,
    pub(crate) options: ConnectOptions,
}

/// One look.
#[derive(Default)]
pub(super) struct Shown {
    /// The status, without `moves`, as JSON.
    pub(super) status: String,
    /// Migrations that have ended, the newest first: the identifier, and as JSON.
    pub(super) moves: Vec<(String, String)>,
    /// The map of each collection, by namespace.
    pub(super) maps: BTreeMap<String, Arc<Drawn>>,
    /// Why there was nothing to see.
    pub(super) trouble: Option<String>,
}

/// A collection's chunks as JSON, and what they were drawn from.
pub(super) struct Drawn {
    pub(super) of: Version,
    pub(super) json: String,
}

/// The version of a table, and the print of the collection's zones.
pub(super) type Version = (u64, u64);

pub(super) struct Watcher {
    newest: watch::Sender<Option<Arc<Shown>>>,
    samples: Mutex<VecDeque<Sample>>,
    map: Arc<Mutex<Map>>,
    visitors: AtomicUsize,
    arrival: Notify,
}

/// The bytes of each shard at a time, in milliseconds since 1970.
type Sample = (i64, Vec<(String, i64)>);

impl Watcher {
    pub(super) fn new() -> Watcher {
        Watcher {
            newest: watch::Sender::new(None),
            samples: Mutex::default(),
            map: Arc::default(),
            visitors: AtomicUsize::new(0),
            arrival: Notify::new(),
        }
    }

    pub(super) fn newest(&self) -> Option<Arc<Shown>> {
        self.newest.borrow().clone()
    }
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Arc<Shown>>> {
        self.newest.subscribe()
    }
    pub(super) fn enter(&self) {
        self.visitors.fetch_add(1, Ordering::Relaxed);
        self.arrival.notify_one();
    }
    pub(super) fn leave(&self) {
        self.visitors.fetch_sub(1, Ordering::Relaxed);
    }

    /// The chunk at a place of the map, as JSON.
    pub(super) fn chunk(&self, ns: &str, at: usize) -> Option<String> {
        let map = self.map.lock();
        let zones = map.zones.get(ns).map(Vec::as_slice).unwrap_or_default();
        let (chunk, zone) = map.chunks.table(ns)?.with_zones(zones).nth(at)?;
        let shown = document::doc! {
            "min": chunk.min.doc().to_document(), "max": chunk.max.doc().to_document(), "shard": chunk.shard.as_str(),
            "jumbo": chunk.is_jumbo, "zone": zone.map(|zone| zone.name.as_str()),
        };
        Some(document::extended_json::to_relaxed(&Value::Document(shown)))
    }

    /// The sizes of the shards up to now, as JSON: `[[at, {shard: bytes}], ...]`.
    pub(super) fn history(&self) -> String {
        let samples = self.samples.lock();
        let sizes = |sizes: &[(String, i64)]| {
            let all = sizes.iter().map(|(shard, bytes)| (shard.clone(), (*bytes).into()));
            serde_json::Value::Object(all.collect())
        };
        let all =
            samples.iter().map(|(at, shards)| serde_json::Value::Array(vec![(*at).into(), sizes(shards)]));
        serde_json::Value::Array(all.collect()).to_string()
    }

    /// Never ends.
    pub(super) async fn run(&self, source: Source) {
        let mut gatherer = None;
        loop {
            let started = Instant::now();
            let looked = tokio::time::timeout(PATIENCE, self.look(&source, &mut gatherer)).await;
            let looked = looked.unwrap_or_else(|_| {
                Err(err!(EXCEEDED_TIME_LIMIT, "no look within {} seconds", PATIENCE.as_secs()))
            });
            self.newest.send_replace(Some(Arc::new(looked.unwrap_or_else(|error| {
                gatherer = None;
                Shown { trouble: Some(error.message.to_string()), ..Shown::default() }
            }))));
            self.pause(started.elapsed()).await;
        }
    }

    async fn look(&self, source: &Source, gatherer: &mut Option<Gatherer>) -> Result<Shown> {
        let gatherer = match gatherer {
            Some(gatherer) => gatherer,
            None => {
                let connection = ask::connect_to_writable(source.hosts.clone(), &source.options).await?;
                gatherer.insert(Gatherer::new(connection, source.options.clone(), self.map.clone()))
            }
        };
        let mut view = gatherer.gather().await?;
        self.remember(&view);
        let moves = view.remove("moves");
        let moves = moves.as_ref().and_then(Value::as_array).into_iter().flatten();
        Ok(Shown {
            status: document::extended_json::to_relaxed(&Value::Document(view)),
            moves: moves.filter_map(|m| Some((json(m.as_document()?.get("_id")?), json(m)))).collect(),
            maps: self.draw(&self.map.lock()),
            trouble: None,
        })
    }

    /// The maps, of which those are taken over that have not changed.
    fn draw(&self, map: &Map) -> BTreeMap<String, Arc<Drawn>> {
        let before = self.newest();
        let before = before.as_ref().map(|shown| &shown.maps);
        let mut maps = BTreeMap::new();
        for table in map.chunks.tables() {
            let zones = map.zones.get(&table.ns).map(Vec::as_slice).unwrap_or_default();
            let print = zones.iter().fold(0, |print, zone| zone.print(print));
            let known = before.and_then(|maps| maps.get(&table.ns));
            let of = (table.version, print);
            let drawn = match known.filter(|d| d.of == of) {
                Some(drawn) => drawn.clone(),
                None => Arc::new(Drawn { of, json: table.to_json(zones) }),
            };
            maps.insert(table.ns.clone(), drawn);
        }
        maps
    }

    fn remember(&self, view: &Document) {
        let Some(at) = millis(view.get("at")) else { return };
        let shards = view.get_array("shards").into_iter().flatten().filter_map(Value::as_document);
        let size = |s: &Document| Some((s.get_str("_id")?.to_string(), s.get_i64("bytes")?));
        let mut samples = self.samples.lock();
        samples.push_back((at, shards.filter_map(size).collect()));
        if samples.len() > SAMPLES {
            let mut keep = false;
            samples.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    async fn pause(&self, took: Duration) {
        let (rest, looked) = (took.saturating_mul(REST), Instant::now());
        if self.visitors.load(Ordering::Relaxed) == 0 {
            tokio::select! {
                () = tokio::time::sleep(rest.max(IDLE_PAUSE)) => return,
                () = self.arrival.notified() => {}
            }
        }
        tokio::time::sleep_until(looked + rest.min(PAUSE_MAX).max(PAUSE)).await;
    }
}

fn millis(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::DateTime(ms)) => Some(*ms),
        _ => None,
    }
}

fn json(value: &Value) -> String {
    document::extended_json::to_relaxed(value)
}
