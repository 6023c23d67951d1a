//! Who holds a lock, by name, for the errors of those who wait in vain.

use parking_lot::Mutex;
use std::sync::Arc;

/// The names of those who hold a lock.
#[derive(Clone, Debug, Default)]
pub struct Holders(Arc<Mutex<Vec<Arc<str>>>>);

/// A guard of a lock, whose holder has a name as long as it lives.
#[derive(Debug)]
pub struct Held<G> {
    _guard: G,
    name: Arc<str>,
    holders: Holders,
}

impl Holders {
    /// Names who has got the guard.
    pub fn hold<G>(&self, guard: G, name: &str) -> Held<G> {
        let name: Arc<str> = name.into();
        self.0.lock().push(name.clone());
        Held { _guard: guard, name, holders: self.clone() }
    }
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().iter().map(|name| name.to_string()).collect()
    }
}

impl<G> Drop for Held<G> {
    fn drop(&mut self) {
        let mut names = self.holders.0.lock();
        if let Some(at) = names.iter().position(|name| Arc::ptr_eq(name, &self.name)) {
            names.swap_remove(at);
        }
    }
}

/// What an error adds of holders; of many it names the first.
pub(crate) fn shown(names: impl IntoIterator<Item = String>) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = names.into_iter().take(SHOWN).collect();
    match names.is_empty() {
        // Who waited has just been overtaken.
        true => "it was let go just then".to_string(),
        false => format!("it is held by {}", names.join(", ")),
    }
}
