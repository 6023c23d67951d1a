//! Things kept by name for as long as somebody holds them.
//!
//! The names are those that clients ask for, whether something of the name exists or not: when the map has doubled, what
//! nobody else holds is dropped. Under the map's lock nobody can begin to hold such a thing.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Fewer are kept without looking.
const FEW: usize = 256;

pub(super) struct Named<T> {
    things: BTreeMap<String, Arc<T>>,
    sweep_at: usize,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { things: BTreeMap::new(), sweep_at: FEW }
    }
}

impl<T: Default> Named<T> {
    /// The thing of this name, made when there is none.
    pub(super) fn of(&mut self, name: &str) -> Arc<T> {
        if let Some(thing) = self.things.get(name) {
            return thing.clone();
        }
        if self.things.len() >= self.sweep_at {
            self.things.retain(|_, thing| Arc::strong_count(thing) > 1);
            self.sweep_at = (self.things.len() * 2).max(FEW);
        }
        self.things.entry(name.to_string()).or_default().clone()
    }
    pub(super) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.things.get(name)
    }
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.things.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn what_is_held_stays_and_names_alone_do_not_add_up() {
        let mut named = Named::<AtomicU64>::default();
        let held = named.of("held");
        held.store(7, Ordering::SeqCst);
        for i in 0..10 * FEW {
            named.of(&i.to_string());
        }
        assert!(named.all().count() <= FEW);
        assert_eq!(named.of("held").load(Ordering::SeqCst), 7);
    }

    #[test]
    fn what_is_held_may_be_more_than_few() {
        let mut named = Named::<AtomicU64>::default();
        let held: Vec<_> = (0..4 * FEW).map(|i| named.of(&i.to_string())).collect();
        assert_eq!((named.all().count(), held.len()), (4 * FEW, 4 * FEW));
    }
}
