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
    list: RwLock<Vec<(String, Arc<dyn WriteObserver>)>>,
    /// Told of every namespace's writes.
    of_all: RwLock<Option<Arc<dyn WriteObserver>>>,
    exchanges: RwLock<Vec<Arc<dyn Fn() + Send + Sync>>>,
}

impl Observers {
    pub fn add(&self, ns: &str, observer: Arc<dyn WriteObserver>) {
        self.list.write().push((ns.to_string(), observer));
    }
    /// From now on this one is told of every write, in the place of the one before.
    pub fn watch_all(&self, observer: Option<Arc<dyn WriteObserver>>) {
        *self.of_all.write() = observer;
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
        let list = self.list.read();
        let named = list.iter().filter(|(n, _)| n == ns).map(|(_, o)| o.clone());
        named.chain(self.of_all.read().clone()).collect()
    }
}
