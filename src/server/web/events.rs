//! The stream of events that one visitor gets.
//!
//! ```text
//! history   [[at, {shard: bytes}], ...]    once, at the beginning
//! map       a collection's chunks (status/chunks.rs), at the beginning and whenever they have changed
//! gone      "ns": a collection whose map is no more
//! moves     [migration that has ended, ...], the newest first: those the visitor has not had
//! status    what status/gather.rs says, with every look
//! trouble   "why": the cluster could not be asked
//! ```
//! A visitor who reads slowly gets fewer looks, never a queue of them.

use super::watcher::{Shown, Watcher};
use futures::Stream;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::watch;

struct Visit {
    watcher: Arc<Watcher>,
    looks: watch::Receiver<Option<Arc<Shown>>>,
    is_new: bool,
    /// The drawings sent, by namespace.
    maps: BTreeMap<String, u64>,
    /// When the newest migration ended that was sent.
    moves: i64,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.watcher.leave();
    }
}

/// Every item is some whole events.
pub(super) fn stream(watcher: Arc<Watcher>) -> impl Stream<Item = String> {
    watcher.enter();
    let mut looks = watcher.subscribe();
    looks.mark_changed();
    let visit = Visit { watcher, looks, is_new: true, maps: BTreeMap::new(), moves: i64::MIN };
    futures::stream::unfold(visit, |mut visit| async move {
        loop {
            visit.looks.changed().await.ok()?;
            let look = visit.looks.borrow_and_update().clone();
            if let Some(look) = look {
                return Some((visit.events(&look), visit));
            }
        }
    })
}

/// The data holds no line break: it is JSON.
fn event(out: &mut String, name: &str, data: &str) {
    let _ = write!(out, "event: {name}\ndata: {data}\n\n");
}

impl Visit {
    fn events(&mut self, look: &Shown) -> String {
        let mut out = String::new();
        if let Some(why) = &look.trouble {
            event(&mut out, "trouble", &serde_json::Value::from(why.as_str()).to_string());
            return out;
        }
        if std::mem::take(&mut self.is_new) {
            event(&mut out, "history", &self.watcher.history());
        }
        self.maps(&mut out, look);
        self.moves(&mut out, look);
        event(&mut out, "status", &look.status);
        out
    }

    fn maps(&mut self, out: &mut String, look: &Shown) {
        self.maps.retain(|ns, _| {
            let stays = look.maps.contains_key(ns);
            if !stays {
                event(out, "gone", &serde_json::Value::from(ns.as_str()).to_string());
            }
            stays
        });
        for (ns, drawn) in &look.maps {
            if self.maps.insert(ns.clone(), drawn.number) != Some(drawn.number) {
                event(out, "map", &drawn.json);
            }
        }
    }

    fn moves(&mut self, out: &mut String, look: &Shown) {
        // Several may end in one millisecond; the page knows what it has had.
        let new: Vec<&str> =
            look.moves.iter().filter(|(end, _)| *end >= self.moves).map(|(_, json)| json.as_str()).collect();
        if let Some((newest, _)) = look.moves.first().filter(|(end, _)| *end > self.moves) {
            self.moves = *newest;
            event(out, "moves", &format!("[{}]", new.join(",")));
        }
    }
}
