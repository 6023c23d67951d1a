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

use super::watcher::{Shown, Version, Watcher};
use futures::Stream;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::watch;

struct Visit {
    watcher: Arc<Watcher>,
    looks: watch::Receiver<Option<Arc<Shown>>>,
    is_new: bool,
    /// The drawings sent, by namespace.
    maps: BTreeMap<String, Version>,
    /// The ended migrations sent, as far as they are still shown. They need not have come in the order of their ends.
    moves: BTreeSet<String>,
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
    let visit = Visit { watcher, looks, is_new: true, maps: BTreeMap::new(), moves: BTreeSet::new() };
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
            if self.maps.insert(ns.clone(), drawn.of) != Some(drawn.of) {
                event(out, "map", &drawn.json);
            }
        }
    }

    fn moves(&mut self, out: &mut String, look: &Shown) {
        let shown: BTreeSet<String> = look.moves.iter().map(|(id, _)| id.clone()).collect();
        let new = look.moves.iter().filter(|(id, _)| !self.moves.contains(id));
        let new: Vec<&str> = new.map(|(_, json)| json.as_str()).collect();
        if !new.is_empty() {
            event(out, "moves", &format!("[{}]", new.join(",")));
        }
        self.moves = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::super::watcher::Drawn;
    use super::*;

    fn visit() -> Visit {
        let watcher = Arc::new(Watcher::new());
        watcher.enter();
        let looks = watcher.subscribe();
        Visit { watcher, looks, is_new: true, maps: BTreeMap::new(), moves: BTreeSet::new() }
    }
    fn look(moves: &[&str], map: Version) -> Shown {
        let moves = moves.iter().map(|id| (id.to_string(), format!("\"{id}\""))).collect();
        let drawn = Arc::new(Drawn { of: map, json: format!("{map:?}") });
        Shown { moves, maps: BTreeMap::from([("d.c".to_string(), drawn)]), ..Shown::default() }
    }

    #[test]
    fn a_migration_is_sent_once_wherever_it_appears() {
        let mut visit = visit();
        assert!(visit.events(&look(&["a"], (1, 0))).contains("data: [\"a\"]\n"));
        // One that ended before it is written down after it.
        assert!(visit.events(&look(&["a", "b"], (1, 0))).contains("data: [\"b\"]\n"));
        assert!(!visit.events(&look(&["a", "b"], (1, 0))).contains("event: moves"));
    }

    #[test]
    fn a_map_that_changed_during_trouble_is_sent_after_it() {
        let mut visit = visit();
        assert!(visit.events(&look(&[], (1, 0))).contains("event: map"));
        let trouble = Shown { trouble: Some("gone".to_string()), ..Shown::default() };
        assert_eq!(visit.events(&trouble), "event: trouble\ndata: \"gone\"\n\n");
        assert!(!visit.events(&look(&[], (1, 0))).contains("event: map"));
        assert!(visit.events(&look(&[], (2, 0))).contains("event: map"));
    }
}
