//! Observers of writes: told inside the commit, under the namespace's latch, what it did.
//!
//! An observer notes and returns; it takes no latch and waits for nothing.

use document::Doc;
use parking_lot::RwLock;
use std::sync::Arc;

pub trait WriteObserver: Send + Sync + 'static {
    fn inserted(&self, _ns: &str, _doc: Doc<'_>) {}
    fn updated(&self, _ns: &str, _new: Doc<'_>) {}
    fn deleted(&self, _ns: &str, _old: Doc<'_>) {}
}

/// Observers by exact namespace. Few namespaces are observed and a miss costs one comparison of lengths.
#[derive(Default)]
pub struct Observers {
    watching: RwLock<Watching>,
    exchanges: RwLock<Vec<Arc<dyn Fn() + Send + Sync>>>,
}

/// Every write asks for these, under one lock.
#[derive(Default)]
struct Watching {
    one: Vec<(String, Arc<dyn WriteObserver>)>,
    /// Told of every namespace's writes.
    all: Option<Arc<dyn WriteObserver>>,
}

impl Observers {
    pub fn add(&self, ns: &str, observer: Arc<dyn WriteObserver>) {
        self.watching.write().one.push((ns.to_string(), observer));
    }
    /// From now on this one is told of every write, in the place of the one before.
    pub fn watch_all(&self, observer: Option<Arc<dyn WriteObserver>>) {
        self.watching.write().all = observer;
    }
    /// Has `f` called when everything was replaced by what another member has, before that is served. No write is told then.
    pub fn on_exchange(&self, f: Arc<dyn Fn() + Send + Sync>) {
        self.exchanges.write().push(f);
    }
    pub(crate) fn exchanged(&self) {
        let told = self.exchanges.read().clone();
        told.iter().for_each(|f| f());
    }
    pub fn of(&self, ns: &str) -> Vec<Arc<dyn WriteObserver>> {
        let watching = self.watching.read();
        let named = watching.one.iter().filter(|(n, _)| n == ns).map(|(_, o)| o);
        named.chain(&watching.all).cloned().collect()
    }
}
